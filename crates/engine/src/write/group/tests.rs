//! The line of writers: the order in which they lead, are served, and are told to wait no more.

use super::*;

/// No commit of others.
const NONE: Option<fn(&mut Group) -> Result<()>> = None;

fn request(tag: u8, options: WriteOptions) -> Request {
    Request { bytes: vec![tag; 16], options, alone: false }
}

fn waiting(queue: &WriteQueue) -> usize {
    queue.line.lock().waiting.len()
}

/// A thread that waits in line, once it does.
fn in_line<T: Send + 'static>(
    queue: &Arc<WriteQueue>,
    wait: impl FnOnce(&WriteQueue) -> T + Send + 'static,
) -> std::thread::JoinHandle<T> {
    let before = waiting(queue);
    let of_thread = queue.clone();
    let thread = std::thread::spawn(move || wait(&of_thread));
    while waiting(queue) == before {
        std::thread::yield_now();
    }
    thread
}

/// The groups that four writers of 16 bytes are written in, which wait for another.
fn groups_of_four(queue: WriteQueue) -> Vec<Vec<u8>> {
    let queue = Arc::new(queue);
    assert!(queue.try_lead());
    let threads: Vec<_> = (0..4u8)
        .map(|tag| {
            in_line(&queue, move |queue| {
                match queue.wait_in_line(request(tag, WriteOptions::default()), None) {
                    Turn::Lead(own) => {
                        let followers = queue.gather(&own);
                        let group: Vec<u8> = std::iter::once(own.bytes[0])
                            .chain(followers.iter().map(|(_, r)| r.bytes[0]))
                            .collect();
                        for (writer, request) in followers {
                            writer.finish(Ok(()), request.bytes);
                        }
                        queue.end_lead(&own.options, 16, NONE);
                        group
                    }
                    Turn::Done(result, bytes) => {
                        result.unwrap();
                        assert_eq!(bytes, vec![tag; 16]);
                        Vec::new()
                    }
                }
            })
        })
        .collect();
    queue.end_lead(&WriteOptions { sync: true, ..WriteOptions::default() }, 16, NONE);
    let groups: Vec<Vec<u8>> = threads.into_iter().map(|t| t.join().unwrap()).collect();
    assert!(queue.try_lead());
    groups.into_iter().filter(|group| !group.is_empty()).collect()
}

#[test]
fn waiting_writers_are_committed_by_the_next_leader_in_order() {
    assert_eq!(groups_of_four(WriteQueue::default()), [[0, 1, 2, 3]]);
}

#[test]
fn a_group_has_no_more_bytes_than_it_may() {
    assert_eq!(groups_of_four(WriteQueue::with_max_group_bytes(35)), [[0, 1], [2, 3]]);
    assert_eq!(
        groups_of_four(WriteQueue::with_max_group_bytes(1)),
        [[0], [1], [2], [3]],
        "too large for any group"
    );
}

/// A request of `tag` in line, waiting for its turn or until it is served; true once it is committed.
fn served(queue: &Arc<WriteQueue>, tag: u8, patience: Option<Duration>) -> std::thread::JoinHandle<bool> {
    in_line(queue, move |queue| {
        let turn = queue.wait_in_line(request(tag, WriteOptions::default()), patience);
        matches!(turn, Turn::Done(Ok(()), bytes) if bytes == vec![tag; 16])
    })
}

/// Patience that does not end while a test runs.
const PATIENT: Option<Duration> = Some(Duration::from_secs(1000));

/// Writes as a leader until the turn is over; returns the requests of others that it committed.
fn write_a_turn(queue: &WriteQueue) -> Vec<Vec<u8>> {
    let mut committed = Vec::new();
    loop {
        assert!(queue.try_lead());
        let commit = |group: &mut Group| {
            committed.push(group.iter().map(|(_, request)| request.bytes[0]).collect::<Vec<_>>());
            Ok(())
        };
        if queue.end_lead(&WriteOptions::default(), 16, Some(commit)) {
            return committed;
        }
    }
}

#[test]
fn those_who_called_are_committed_before_the_lead_is_free_and_the_patient_have_turns() {
    let queue = Arc::new(WriteQueue::default());
    assert!(queue.try_lead());
    let (patient, called) = (served(&queue, 0, PATIENT), served(&queue, 1, None));
    let mut committed = Vec::new();
    let mut commit = |group: &mut Group| {
        committed.push(group.iter().map(|(_, request)| request.bytes[0]).collect::<Vec<_>>());
        Ok(())
    };
    assert!(!queue.end_lead(&WriteOptions::default(), 16, Some(&mut commit)), "its turn is not over");
    assert!(called.join().unwrap());
    assert_eq!(waiting(&queue), 1, "the first is patient");
    assert_eq!(committed, [[1]]);
    assert_eq!(write_a_turn(&queue), [[0]], "after a turn it is the next one's");
    assert!(patient.join().unwrap());
}

#[test]
fn one_writer_is_woken_a_turn_and_the_lead_is_kept_for_it() {
    let queue = Arc::new(WriteQueue::default());
    assert!(queue.try_lead());
    let [first, second] = [0, 1].map(|tag| served(&queue, tag, PATIENT));
    assert!(!queue.end_lead(&WriteOptions::default(), 16, NONE), "a turn has begun");
    assert_eq!(write_a_turn(&queue), [[0]]);
    assert!(first.join().unwrap());
    // As if it were not awake yet.
    queue.waking.store(1, Ordering::Relaxed);
    assert_eq!(write_a_turn(&queue), [[0; 0]; 0], "nobody else is woken");
    assert!(!queue.try_lead(), "the one whose turn is over waits");
    assert!(queue.spin_for_lead(), "the one whose turn it is does not");
    queue.waking.store(0, Ordering::Relaxed);
    queue.end_lead(&WriteOptions::default(), 16, NONE);
    assert_eq!(write_a_turn(&queue), [[1]]);
    assert!(second.join().unwrap());
    assert!(queue.try_lead());
}

#[test]
fn the_next_in_line_is_told_that_it_is_the_first() {
    let queue = Arc::new(WriteQueue::default());
    assert!(queue.try_lead());
    let first = served(&queue, 0, PATIENT);
    let second = in_line(&queue, |queue| {
        let soon = Some(Duration::from_micros(1));
        if let Turn::Lead(own) = queue.wait_in_line(request(1, WriteOptions::default()), soon) {
            queue.end_lead(&own.options, 16, NONE);
        }
    });
    assert!(!queue.end_lead(&WriteOptions::default(), 16, NONE));
    assert_eq!(write_a_turn(&queue), [[0]]);
    // Nobody writes any more.
    first.join().unwrap();
    second.join().unwrap();
}

#[test]
fn large_writes_have_short_turns() {
    let queue = Arc::new(WriteQueue::default());
    assert!(queue.try_lead());
    let patient = served(&queue, 0, PATIENT);
    let commit = |_: &mut Group| Ok(());
    assert!(queue.end_lead(&WriteOptions::default(), 512 * TURN as usize, Some(commit)));
    assert!(patient.join().unwrap());
}

#[test]
fn the_first_in_line_notices_that_nobody_writes_any_more() {
    let queue = Arc::new(WriteQueue::default());
    assert!(queue.try_lead());
    let writers: Vec<_> = (0..3)
        .map(|tag| {
            in_line(&queue, move |queue| {
                let soon = Some(Duration::from_micros(1));
                if let Turn::Lead(own) = queue.wait_in_line(request(tag, WriteOptions::default()), soon) {
                    queue.end_lead(&own.options, 16, NONE);
                }
            })
        })
        .collect();
    assert!(!queue.end_lead(&WriteOptions { sync: false, ..WriteOptions::default() }, 16, NONE));
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    assert!(queue.try_lead());
}

#[test]
fn a_patient_writer_leads_if_nobody_does_when_its_patience_is_over() {
    let queue = Arc::new(WriteQueue::default());
    assert!(queue.try_lead());
    let writer = in_line(&queue, |queue| {
        let turn = queue.wait_in_line(request(0, WriteOptions::default()), Some(Duration::from_micros(1)));
        // Called while the other leads, or leading after: either is right.
        if let Turn::Lead(own) = turn {
            queue.end_lead(&own.options, 16, NONE);
        }
    });
    queue.end_lead(&WriteOptions::default(), 16, NONE);
    writer.join().unwrap();
    assert!(queue.try_lead());
}

#[test]
fn a_sync_write_is_not_hidden_in_an_unsynced_group() {
    let queue = Arc::new(WriteQueue::default());
    assert!(queue.try_lead());
    let sync = WriteOptions { sync: true, ..WriteOptions::default() };
    let threads = [WriteOptions::default(), sync].map(|options| {
        in_line(&queue, move |queue| {
            let Turn::Lead(own) = queue.wait_in_line(request(0, options), None) else {
                panic!("each must lead its own group");
            };
            let followers = queue.gather(&own);
            let served =
                queue.end_lead(&own.options, 16, Some(|_: &mut Group| panic!("it would not be synced")));
            followers.len() + usize::from(served)
        })
    });
    queue.end_lead(&WriteOptions::default(), 16, NONE);
    assert!(threads.into_iter().all(|t| t.join().unwrap() == 0));
}

#[test]
fn who_asked_not_to_wait_fails_when_the_leader_waits_for_room() {
    let queue = Arc::new(WriteQueue::default());
    assert!(queue.try_lead());
    let impatient = WriteOptions { no_slowdown: true, ..WriteOptions::default() };
    let fails = move |queue: &WriteQueue| match queue.wait_in_line(request(0, impatient), None) {
        Turn::Done(result, bytes) => {
            assert_eq!(bytes, vec![0; 16]);
            result.unwrap_err().kind()
        }
        Turn::Lead(_) => panic!("somebody leads"),
    };
    let before = in_line(&queue, fails);
    let waits = in_line(&queue, |queue| {
        let turn = queue.wait_in_line(request(1, WriteOptions::default()), None);
        matches!(turn, Turn::Done(Ok(()), _))
    });
    queue.begin_stall();
    assert_eq!(before.join().unwrap(), ErrorKind::Incomplete);
    assert_eq!(fails(&queue), ErrorKind::Incomplete, "one that comes now");
    assert_eq!(waiting(&queue), 1);
    queue.end_stall();
    let after = in_line(&queue, move |queue| {
        matches!(queue.wait_in_line(request(2, impatient), None), Turn::Lead(_))
    });
    queue.end_lead(&WriteOptions::default(), 16, Some(|_: &mut Group| Ok(())));
    assert!(waits.join().unwrap() && after.join().unwrap());
}

/// Runs the drawings of `testdata/group`: writers in line, the leader's options, and which are committed with it.
///
/// ```text
/// gather sync bytes=100          the leader's options, and the size of its batch
/// 200 sync called                a writer in line: bytes, options, whether it called
/// ```
#[cfg(not(loom))]
#[test]
fn groups_are_gathered_as_drawn() {
    use crate::testing::cases;
    fn options(words: &str) -> WriteOptions {
        let has = |word: &str| words.split_whitespace().any(|other| other == word);
        WriteOptions {
            sync: has("sync"),
            disable_wal: has("unlogged"),
            no_slowdown: has("no_slowdown"),
            rate_limiter_priority: has("paced").then_some(outcrop_env::IoPriority::User),
            ..WriteOptions::default()
        }
    }
    fn sizes(sizes: impl Iterator<Item = usize>) -> String {
        let sizes: Vec<String> = sizes.map(|size| size.to_string()).collect();
        if sizes.is_empty() { "none".into() } else { sizes.join(" ") }
    }
    cases::run("group/gather", |case| {
        assert_eq!(case.command, "gather");
        let queue = WriteQueue::default();
        for line in &case.body {
            let (bytes, words) = line.split_once(' ').unwrap_or((line, ""));
            let bytes = vec![0; bytes.parse().expect("bytes")];
            let alone = words.contains("alone");
            let writer = Writer::new(Request { bytes, options: options(words), alone });
            queue.line.lock().waiting.push_back(QueuedWriter { writer, called: words.contains("called") });
        }
        let bytes = vec![0; case.argument("bytes", 10) as usize];
        let group = queue.gather(&Request { bytes, options: options(case.arguments), alone: false });
        let together = sizes(group.iter().map(|(_, request)| request.bytes.len()));
        let left = sizes(queue.line.lock().waiting.iter().map(|place| place.writer.take().bytes.len()));
        format!("with it: {together}; left: {left}")
    });
}
