#include "contract/job_file_names.h"

#include "fmt/format.h"

namespace muster::contract {
namespace {

struct Name {
  std::string_view api;
  std::string_view file;
  bool is_whole = false;  // an item or an inner field is written as a part of it, without a name
};

// An inner field stands before the field around it.
constexpr Name kNames[] = {
    {"working_directory", "workdir"},
    {"time_limit", "time"},
    {"command.script_arguments", "arguments"},
    {"command.script", "run"},
    {"command.argv.args", "command"},
    {"command.argv", "command"},
    {"resources.cpu_millis", "resources.cpus"},
    {"resources.memory_bytes", "resources.memory"},
    {"resources.gpus", "resources.gpus", true},
    {"placement.clusters", "cluster", true},
    {"placement.pool", "pool"},
};

// Returns "roles[1]." for "roles[1].command", and empty if it is no field of a role.
std::string_view RoleOf(std::string_view field) {
  if (!field.starts_with("roles[")) return "";
  const size_t end = field.find("].");
  return end == field.npos ? "" : field.substr(0, end + 2);
}

}  // namespace

std::string JobFileName(std::string_view api_field) {
  const std::string_view role = RoleOf(api_field);
  const std::string_view field = api_field.substr(role.size());
  for (const Name& name : kNames) {
    if (!field.starts_with(name.api)) continue;
    const std::string_view rest = field.substr(name.api.size());
    if (!rest.empty() && rest.front() != '.' && rest.front() != '[') continue;
    return fmt::format("{}{}{}", role, name.file, name.is_whole ? "" : rest);
  }
  return std::string(api_field);
}

}  // namespace muster::contract
