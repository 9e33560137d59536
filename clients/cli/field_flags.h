// Fields of a spec, named as the user typed them. Pure: the fields come from the facts of an
// answer, and no sentence is searched for them.
#ifndef MUSTER_CLIENTS_CLI_FIELD_FLAGS_H_
#define MUSTER_CLIENTS_CLI_FIELD_FLAGS_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "muster/v1/facts.pb.h"

namespace muster::cli {

// The words of a command line for the fields of a spec.
struct FieldFlags {
  // The API's name of a field, and what the user typed for it. An inner field stands before the
  // field around it.
  std::span<const std::pair<std::string_view, std::string_view>> names;
  // True: its users write job files, too, and know the names there.
  bool are_fields_known = true;
};

// Takes the 3 from "requests[3].spec.", and `job` from "spec."; `field` loses it.
size_t TakeJob(size_t job, std::string_view* field);

// "--workdir (workdir)": the flag beside the name that job files have, "--chdir" for users who do
// not write those. A field without a flag has that name alone, or stays as it is.
std::string Typed(std::string_view field, const FieldFlags& flags);

// An answer about fields, with the flags that were typed for them: in place of the bad fields of a
// request, else before the message.
absl::Status NamingFlags(const absl::Status& status, const FieldFlags& flags);

// The line of a warning: its sentence and the remedy, behind the flag of the field that it is about
// for users who do not know the field.
std::string WarningText(const v1::SubmitWarning& warning, const FieldFlags& flags);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_FIELD_FLAGS_H_
