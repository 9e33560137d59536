// The fields of a job file that are written otherwise than the API has them, or that the API does
// not have. The reader and the schema share this table. Private to the client library.
#ifndef MUSTER_CLIENTS_CPP_JOB_FILE_FIELDS_H_
#define MUSTER_CLIENTS_CPP_JOB_FILE_FIELDS_H_

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

namespace muster::client {

// The forms of a field's value.
enum class WrittenForm {
  kAsApi,      // by the type that the API gives it
  kText,       // a text, also where the API's own has another type
  kTexts,      // a list of texts
  kTextMap,    // texts by name
  kDuration,   // "90m", or seconds
  kSize,       // "16Gi", or bytes
  kCpus,       // a number with a fraction, or a text
  kGpus,       // "H100:8", a number, the API's form, or a list of these
  kCommand,    // `run` is a script, `command` a list of words or the API's form
  kDependsOn,  // a number, a name, the API's form, or a list of these
  kSecrets,    // names by variable, or the API's form
};

struct WrittenField {
  std::string_view api;    // the field's full name; of one that the API lacks, as if it had it
  std::string_view names;  // with '|' between them
  WrittenForm form;
};

inline constexpr WrittenField kWrittenFields[] = {
    {"muster.v1.JobSpec.arguments", "arguments", WrittenForm::kTexts},
    {"muster.v1.JobSpec.cluster", "cluster", WrittenForm::kText},
    {"muster.v1.JobSpec.command", "run|command", WrittenForm::kCommand},
    {"muster.v1.JobSpec.depends_on", "depends_on", WrittenForm::kDependsOn},
    {"muster.v1.JobSpec.file_mounts", "file_mounts", WrittenForm::kTextMap},
    {"muster.v1.JobSpec.pool", "pool", WrittenForm::kText},
    {"muster.v1.JobSpec.resources", "resources", WrittenForm::kAsApi},
    {"muster.v1.JobSpec.roles", "roles", WrittenForm::kAsApi},
    {"muster.v1.JobSpec.secrets", "secrets", WrittenForm::kSecrets},
    {"muster.v1.JobSpec.time_limit", "time|time_limit", WrittenForm::kDuration},
    {"muster.v1.JobSpec.working_directory", "workdir|working_directory", WrittenForm::kText},
    {"muster.v1.Resources.cpu_millis", "cpus|cpu_millis", WrittenForm::kCpus},
    {"muster.v1.Resources.gpus", "gpus", WrittenForm::kGpus},
    {"muster.v1.Resources.memory_bytes", "memory|memory_bytes", WrittenForm::kSize},
    {"muster.v1.Role.arguments", "arguments", WrittenForm::kTexts},
    {"muster.v1.Role.command", "run|command", WrittenForm::kCommand},
    {"muster.v1.SlurmOptions.timeout", "timeout", WrittenForm::kDuration},
};

// Null: it is written as the API has it.
inline const WrittenField* FindWritten(std::string_view api) {
  const auto* found = std::find_if(std::begin(kWrittenFields), std::end(kWrittenFields),
                                   [api](const WrittenField& field) { return field.api == api; });
  return found == std::end(kWrittenFields) ? nullptr : found;
}

// The names of a field of the table.
inline std::string WrittenNames(std::string_view api) {
  return std::string(FindWritten(api)->names);
}

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_JOB_FILE_FIELDS_H_
