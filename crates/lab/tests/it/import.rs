//! The importer on the fixtures.
#[test]
fn scratch() {
    let p = std::env::var("SCRATCH").unwrap();
    let r = outcrop_lab::import::run(&[p.into()]).unwrap();
    println!("{r}");
    for t in ["ops_sec","qps","cpu/o"] {
     let q = outcrop_lab::import::Classic{metric:t.into(),base:None,view:outcrop_lab::import::View::Posts,output:outcrop_lab::import::Output::Text,colours:t=="qps"};
     match r.tables(&q) { Ok(t)=>println!("{}", t[t.len()-1]), Err(e)=>println!("{e}") }
    }
}
