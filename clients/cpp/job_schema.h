// The JSON Schema of a job file, for editors that complete and check YAML.
#ifndef MUSTER_CLIENTS_CPP_JOB_SCHEMA_H_
#define MUSTER_CLIENTS_CPP_JOB_SCHEMA_H_

#include <string>

namespace muster::client {

// JSON Schema, draft 7, of one document of a job file, made of the API's messages and the table of
// the reader. It is no substitute for `muster submit --validate`: it knows fields and types, and
// neither ranges nor what excludes each other.
std::string JobFileSchema();

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_JOB_SCHEMA_H_
