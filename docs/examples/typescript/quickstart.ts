// Submits a job, follows it to its end and prints its log: node dist/quickstart.js ADDRESS PROTO
// PROTO is the directory proto of the repository.
import { randomUUID } from "node:crypto";
import * as grpc from "@grpc/grpc-js";
import * as protoLoader from "@grpc/proto-loader";

async function main(address: string, proto: string): Promise<void> {
  // 64-bit numbers are strings, because a number of JavaScript cannot hold all of them.
  const definition = protoLoader.loadSync("muster/v1/jobs_service.proto", {
    includeDirs: [proto],
    keepCase: true,
    longs: String,
    enums: String,
    defaults: true,
  });
  const loaded = grpc.loadPackageDefinition(definition) as any;
  const jobs = new loaded.muster.v1.JobsService(address, grpc.credentials.createInsecure());

  const spec = { name: "hello", nodes: 1, command: { script: "echo hello from $MUSTER_CLUSTER" } };
  // A repeat with the same request_id gets the same job, so a broken connection never makes a second one.
  const request = { spec, request_id: randomUUID() };
  const job_id: string = await new Promise((resolve, reject) =>
    jobs.submitJob(request, (error: grpc.ServiceError | null, response: { job_id: string }) =>
      error ? reject(error) : resolve(response.job_id),
    ),
  );
  console.log(`job ${job_id}`);

  for await (const message of jobs.watchJobs({ job_ids: [job_id], beginning: {}, until_terminal: true })) {
    for (const { transition } of message.changes ?? []) { // none: a heartbeat
      if (transition) console.log(transition.job_state); // else a change of no state
    }
  }
  for await (const piece of jobs.readLog({ job_id, follow: true })) {
    process.stdout.write(piece.data);
  }
  jobs.close();
}

main(process.argv[2], process.argv[3]).catch((error: Error) => {
  console.error(error.message);
  process.exit(1);
});
