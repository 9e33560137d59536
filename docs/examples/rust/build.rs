// Makes the module of the API from the protos. PROTO is the directory proto of the repository; default: the one above.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-env-changed=PROTO");
    let proto = std::env::var("PROTO").unwrap_or("../../../proto".into());
    println!("cargo:rerun-if-changed={proto}");
    let service = format!("{proto}/muster/v1/jobs_service.proto");
    tonic_prost_build::configure().build_server(false).compile_protos(&[service], &[proto])?;
    Ok(())
}
