//! Submits a job, follows it to its end and prints its log: cargo run -- ADDRESS
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

/// The API, made by build.rs.
#[allow(dead_code, clippy::all)]
mod v1 {
    tonic::include_proto!("muster.v1");
}

use v1::jobs_service_client::JobsServiceClient;
use v1::{command, watch_jobs_request, Command, JobSpec, ReadLogRequest, SubmitJobRequest, WatchFromBeginning, WatchJobsRequest};

async fn run(address: String) -> Result<(), Box<dyn std::error::Error>> {
    // An address is unix:PATH, or HOST:PORT of a broker with `listen`.
    let url = if address.starts_with("unix:") { address } else { format!("http://{address}") };
    let mut jobs = JobsServiceClient::connect(url).await?;

    let script = command::Form::Script("echo hello from $MUSTER_CLUSTER".into());
    let command = Some(Command { form: Some(script), ..Default::default() });
    let spec = Some(JobSpec { name: "hello".into(), nodes: 1, command, ..Default::default() });
    // A repeat with the same request id gets the same job, so a broken connection never makes a second one.
    let request_id = format!("quickstart-{}", SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos());
    let request = SubmitJobRequest { spec, request_id, ..Default::default() };
    let job_id = jobs.submit_job(request).await?.into_inner().job_id;
    println!("job {job_id}");

    let start = Some(watch_jobs_request::Start::Beginning(WatchFromBeginning {}));
    let watch = WatchJobsRequest { job_ids: vec![job_id], until_terminal: true, start, ..Default::default() };
    let mut steps = jobs.watch_jobs(watch).await?.into_inner();
    while let Some(message) = steps.message().await? {
        // None: a heartbeat. Without a transition: a change of no state.
        for transition in message.changes.into_iter().filter_map(|change| change.transition) {
            println!("{}", transition.job_state().as_str_name());
        }
    }

    let log = ReadLogRequest { job_id, follow: true, ..Default::default() };
    let mut pieces = jobs.read_log(log).await?.into_inner();
    while let Some(piece) = pieces.message().await? {
        std::io::stdout().write_all(&piece.data)?;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let address = std::env::args().nth(1).expect("the broker's address is missing");
    if let Err(error) = run(address).await {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
