// Reads scalars of a task strictly: YAML's own kind of a value counts, as it does for SkyPilot.
#ifndef MUSTER_CLIENTS_CPP_SKYPILOT_VALUES_H_
#define MUSTER_CLIENTS_CPP_SKYPILOT_VALUES_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "clients/cpp/yaml_reader.h"

namespace muster::client::skypilot {

// Reads a text; true, 5 and 2024-01-31 are none unless they are in quotes. On a problem it is
// noted, and false returned.
bool ReadText(YamlReader& in, const YamlValue& value, std::string* out);
// Reads a whole number; "2" in quotes, 1.5 and true are none.
bool ReadInteger(YamlReader& in, const YamlValue& value, int64_t min, int64_t max, int64_t* out);
// A text or a number, as Python writes it.
bool ReadTextOrNumber(YamlReader& in, const YamlValue& value, std::string* out);

// Holds the values of a mapping's fields by their names, all known; nulls are left out. `names` has
// them, with '|' between those that mean the same.
using Fields = std::map<std::string, YamlValue>;
Fields ReadFields(YamlReader& in, const YamlValue& value,
                  const std::vector<std::string_view>& names,
                  const std::map<std::string_view, std::string_view>& hints = {});
// Returns null if it is not there.
const YamlValue* Find(const Fields& fields, const std::string& name);

// Reads "4", "0.5", "4+": cores, which the '+' makes the least that will do, in thousandths. Both
// ask for as many as they say. INVALID_ARGUMENT says what would work.
absl::StatusOr<uint64_t> ParseTaskCpus(std::string_view text);
// Reads "16", "32+", "512MB", "1.5 TB+": GiB, or the unit's powers of 1024 (KB, MB, GB, TB, PB,
// also KI to PI, in any case). In bytes; 0 for "0". INVALID_ARGUMENT says what would work.
absl::StatusOr<uint64_t> ParseTaskMemory(std::string_view text);

// Such a name has letters and digits of ASCII, joined by one or two of ". _ -".
bool IsTaskName(std::string_view text);

}  // namespace muster::client::skypilot

#endif  // MUSTER_CLIENTS_CPP_SKYPILOT_VALUES_H_
