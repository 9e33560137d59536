// The field depends_on of a job file: jobs by their numbers, or by the names of earlier documents
// of the same file. Private to the client library.
#ifndef MUSTER_CLIENTS_CPP_DEPENDS_ON_H_
#define MUSTER_CLIENTS_CPP_DEPENDS_ON_H_

#include <vector>

#include "clients/cpp/yaml_reader.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::client {

// Reads `12`, `prep`, `{job: 12, outcome: ended}` or a list of these, and the API's own form.
// `earlier` are the jobs of the documents before this one, in order.
void ReadDependsOn(YamlReader* in, const YamlValue& value, const std::vector<v1::JobSpec>& earlier,
                   v1::JobSpec* spec);

// Lets the job that comes after these wait for the success of the last of them.
void DependOnLast(const std::vector<v1::JobSpec>& earlier, v1::JobSpec* spec);

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_DEPENDS_ON_H_
