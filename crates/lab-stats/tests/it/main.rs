//! Every routine against SciPy and statsmodels, and the whole judgement against worlds whose truth is known.

mod golden;
mod refusals;
mod scenarios;
mod simulation;
mod world;
