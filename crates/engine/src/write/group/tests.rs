//! The line of writers: who leads, who is served, who is told to wait no more.

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

#[test]
fn waiting_writers_are_committed_by_the_next_leader_in_order() {
    let queue = Arc::new(WriteQueue::default());
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
                        queue.end_lead(&own.options, NONE);
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
    queue.end_lead(&WriteOptions { sync: true, ..WriteOptions::default() }, NONE);
    let groups: Vec<Vec<u8>> = threads.into_iter().map(|t| t.join().unwrap()).collect();
    assert_eq!(groups[0], [0, 1, 2, 3]);
    assert!(queue.try_lead());
}

#[test]
fn a_leader_that_is_called_commits_those_who_wait_up_to_the_last_that_called() {
    let queue = Arc::new(WriteQueue::default());
    assert!(queue.try_lead());
    let patient = Some(Duration::from_secs(1000));
    let threads: Vec<_> = [(0, patient), (1, None), (2, patient)]
        .map(|(tag, patience)| {
            in_line(&queue, move |queue| {
                let turn = queue.wait_in_line(request(tag, WriteOptions::default()), patience);
                matches!(turn, Turn::Done(Ok(()), bytes) if bytes == vec![tag; 16])
            })
        })
        .into_iter()
        .collect();
    let mut committed = Vec::new();
    let mut commit = |group: &mut Group| {
        committed.push(group.iter().map(|(_, request)| request.bytes[0]).collect::<Vec<_>>());
        Ok(())
    };
    assert!(queue.end_lead(&WriteOptions::default(), Some(&mut commit)));
    assert_eq!(waiting(&queue), 1, "the last is patient");
    assert!(queue.try_lead(), "the lead is free for whoever runs");
    assert!(!queue.end_lead(&WriteOptions::default(), Some(&mut commit)), "nobody called");
    // Who comes and cannot wait takes the patient ones before it along.
    assert!(queue.try_lead());
    let last = in_line(&queue, |queue| {
        matches!(queue.wait_in_line(request(3, WriteOptions::default()), None), Turn::Done(Ok(()), _))
    });
    assert!(queue.end_lead(&WriteOptions::default(), Some(&mut commit)));
    assert_eq!(committed, [vec![0, 1], vec![2, 3]]);
    assert!(threads.into_iter().chain([last]).all(|thread| thread.join().unwrap()));
}

#[test]
fn a_patient_writer_leads_if_nobody_does_when_its_patience_is_over() {
    let queue = Arc::new(WriteQueue::default());
    assert!(queue.try_lead());
    let writer = in_line(&queue, |queue| {
        let turn = queue.wait_in_line(request(0, WriteOptions::default()), Some(Duration::from_micros(1)));
        // Called while the other leads, or leading after: either is right.
        if let Turn::Lead(own) = turn {
            queue.end_lead(&own.options, NONE);
        }
    });
    queue.end_lead(&WriteOptions::default(), NONE);
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
            let served = queue.end_lead(&own.options, Some(|_: &mut Group| panic!("it would not be synced")));
            followers.len() + usize::from(served)
        })
    });
    queue.end_lead(&WriteOptions::default(), NONE);
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
    queue.end_lead(&WriteOptions::default(), Some(|_: &mut Group| Ok(())));
    assert!(waits.join().unwrap() && after.join().unwrap());
}
