// The messages and services of the API, muster.v1, for @bufbuild/protobuf and @connectrpc/connect.

export * from "./gen/muster/v1/audit_service_pb.js";
export * from "./gen/muster/v1/check_code_pb.js";
export * from "./gen/muster/v1/cluster_pb.js";
export * from "./gen/muster/v1/cluster_loss_pb.js";
export * from "./gen/muster/v1/clusters_service_pb.js";
export * from "./gen/muster/v1/facts_pb.js";
export * from "./gen/muster/v1/file_tree_pb.js";
export * from "./gen/muster/v1/files_service_pb.js";
export * from "./gen/muster/v1/identity_service_pb.js";
export * from "./gen/muster/v1/job_pb.js";
export * from "./gen/muster/v1/job_dependency_pb.js";
export * from "./gen/muster/v1/job_spec_pb.js";
export * from "./gen/muster/v1/jobs_service_pb.js";
export * from "./gen/muster/v1/move_jobs_pb.js";
export * from "./gen/muster/v1/projects_service_pb.js";
export * from "./gen/muster/v1/secret_use_pb.js";
export * from "./gen/muster/v1/secrets_service_pb.js";
export * from "./gen/muster/v1/shell_environment_pb.js";
export * from "./gen/muster/v1/signal_jobs_pb.js";
export * from "./gen/muster/v1/usage_service_pb.js";
export * from "./gen/muster/v1/withdrawal_pb.js";
