// Reads the settings of a daemon by name: flag > environment > file > default. `program` is its
// name, "muster-agent"; errors and variables are named after it.
//
// "machines.cpus" is in the file
//   machines:
//     cpus: 8
// in the environment MUSTER_AGENT_MACHINES_CPUS, and on the command line --machines-cpus.
#ifndef MUSTER_PROTO_DAEMON_SETTINGS_H_
#define MUSTER_PROTO_DAEMON_SETTINGS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

struct Setting {
  std::string key;  // "state_dir", "machines.cpus"
  std::string help;
  // Errors quote the value and show forms that work.
  std::function<absl::Status(const std::string& value)> set;
  // True: the file may also have a mapping {a: 1, b: 2}, given as "a:1,b:2".
  bool is_mapping = false;
  // True: the file may also have a list [a, b], given as "a,b".
  bool is_list = false;
  // True: the value is YAML; whatever the file has there is given as a text of it.
  bool is_yaml = false;
};

// Returns the setting's name as an environment variable and as a flag.
std::string EnvName(std::string_view program, std::string_view key);
std::string FlagName(std::string_view key);

// Sets what a YAML text has. INVALID_ARGUMENT "FILE:LINE:COLUMN: ...": an unknown key, with
// the known one that was probably meant, a key given twice, a value of the wrong form, no YAML, or
// more than 1 MiB.
absl::Status ApplyYaml(std::string_view text, std::string_view file, std::string_view program,
                       const std::vector<Setting>& settings);
// Does the same for a file, which may be empty. INVALID_ARGUMENT also if it cannot be read.
absl::Status ApplyYamlFile(const std::string& path, std::string_view program,
                           const std::vector<Setting>& settings);
// Returns the keys at the top of a YAML text, in their order, for a file whose keys are names.
// Nothing, if the text is no mapping: ApplyYaml says so in its own words. `check` refuses names.
// INVALID_ARGUMENT "FILE:LINE: ...".
absl::StatusOr<std::vector<std::string>> NamesInYaml(
    std::string_view text, std::string_view file,
    const std::function<absl::Status(const std::string& name)>& check);
// Returns the texts of the entries of a YAML list. INVALID_ARGUMENT: it is none.
absl::StatusOr<std::vector<std::string>> SplitYamlList(std::string_view text);
// Sets what the environment has; `get` as getenv. INVALID_ARGUMENT names the variable.
absl::Status ApplyEnvironment(const std::function<const char*(const char*)>& get,
                              std::string_view program, const std::vector<Setting>& settings);

// Sets what the command line has, by key. INVALID_ARGUMENT names the flag.
absl::Status ApplyFlags(const std::map<std::string, std::string>& values,
                        const std::vector<Setting>& settings);

// ---- what settings are made of

std::function<absl::Status(const std::string&)> TextInto(std::string* out);
// A decimal number.
std::function<absl::Status(const std::string&)> NumberInto(uint64_t least, uint64_t most,
                                                           std::function<void(uint64_t)> set);

}  // namespace muster

#endif  // MUSTER_PROTO_DAEMON_SETTINGS_H_
