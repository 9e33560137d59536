#include "daemon/settings.h"

#include <fmt/core.h>
#include <yaml-cpp/yaml.h>

#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include "contract/nearest.h"
#include "contract/text.h"

namespace muster {
namespace {

// A settings file is a page of text; more is a mistake, and anchors could make it much more.
constexpr size_t kMaxFileBytes = 1 << 20;

absl::Status Invalid(std::string_view text) { return absl::InvalidArgumentError(ToAbsl(text)); }

// One reading of one file. Exceptions of yaml-cpp leave it.
class YamlFile {
 public:
  YamlFile(std::string_view file, std::string_view program, const std::vector<Setting>& settings)
      : file_(file), program_(program), settings_(settings) {}

  absl::Status Apply(const YAML::Node& node, const std::string& prefix) {
    if (node.IsNull()) return absl::OkStatus();
    if (!node.IsMap()) return At(node.Mark(), "expected lines of the form `key: value`");
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) return At(entry.first.Mark(), "a key must be a word");
      const std::string key = prefix + entry.first.Scalar();
      if (!seen_.insert(key).second) {
        return At(entry.first.Mark(), fmt::format("\"{}\" is given twice", key));
      }
      if (absl::Status status = ApplyEntry(key, entry.first.Mark(), entry.second); !status.ok()) {
        return status;
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status ApplyEntry(const std::string& key, const YAML::Mark& mark, const YAML::Node& value) {
    bool is_section = false;
    for (const Setting& setting : settings_) {
      if (setting.key == key) return Set(setting, value);
      is_section |= setting.key.starts_with(key + ".");
    }
    if (is_section) return Apply(value, key + ".");
    return At(mark, fmt::format("unknown key \"{}\";{} `{} --help` lists the settings", key,
                                Meant(key), program_));
  }

  std::string Meant(const std::string& key) const {
    std::vector<std::string_view> known;
    for (const Setting& setting : settings_) known.push_back(setting.key);
    const std::string_view nearest = contract::Nearest(key, known);
    return nearest.empty() ? "" : fmt::format(" did you mean \"{}\"?", nearest);
  }

  absl::Status Set(const Setting& setting, const YAML::Node& value) const {
    std::string text;
    if (value.IsScalar()) {
      text = value.Scalar();
    } else if (setting.is_yaml) {
      text = YAML::Dump(value);
    } else if (value.IsMap() && setting.is_mapping) {
      for (const auto& entry : value) {
        if (!entry.first.IsScalar() || !entry.second.IsScalar()) {
          return At(entry.first.Mark(), fmt::format("{} takes pairs of words", setting.key));
        }
        text += fmt::format("{}{}:{}", text.empty() ? "" : ",", entry.first.Scalar(),
                            entry.second.Scalar());
      }
    } else if (value.IsSequence() && setting.is_list) {
      for (const YAML::Node& item : value) {
        if (!item.IsScalar()) return At(item.Mark(), fmt::format("{} takes words", setting.key));
        text += fmt::format("{}{}", text.empty() ? "" : ",", item.Scalar());
      }
    } else {
      return At(value.Mark(), fmt::format("{} takes one value", setting.key));
    }
    const absl::Status status = setting.set(text);
    if (status.ok()) return status;
    return At(value.Mark(), fmt::format("{}: {}", setting.key, ToStd(status.message())));
  }

  absl::Status At(const YAML::Mark& mark, std::string_view text) const {
    return Invalid(fmt::format("{}:{}:{}: {}", file_, mark.line + 1, mark.column + 1, text));
  }

  const std::string_view file_;
  const std::string_view program_;
  const std::vector<Setting>& settings_;
  std::set<std::string> seen_;
};

}  // namespace

std::string EnvName(std::string_view program, std::string_view key) {
  std::string name = fmt::format("{}_{}", program, key);
  for (char& c : name) {
    c = c == '.' || c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

std::string FlagName(std::string_view key) {
  std::string name = "--";
  for (const char c : key) name += c == '.' || c == '_' ? '-' : c;
  return name;
}

absl::Status ApplyYaml(std::string_view text, std::string_view file, std::string_view program,
                       const std::vector<Setting>& settings) {
  if (text.size() > kMaxFileBytes) {
    return Invalid(fmt::format("{} has {} bytes; a settings file may have {}", file, text.size(),
                               kMaxFileBytes));
  }
  try {
    return YamlFile(file, program, settings).Apply(YAML::Load(std::string(text)), "");
  } catch (const YAML::Exception& error) {
    return Invalid(
        fmt::format("{}:{}:{}: {}", file, error.mark.line + 1, error.mark.column + 1, error.msg));
  }
}

absl::StatusOr<std::vector<std::string>> SplitYamlList(std::string_view text) {
  try {
    const YAML::Node list = YAML::Load(std::string(text));
    if (!list.IsSequence()) return Invalid("expected a list, each entry with `key: value`");
    std::vector<std::string> entries;
    for (const YAML::Node& entry : list) entries.push_back(YAML::Dump(entry));
    return entries;
  } catch (const YAML::Exception& error) {
    return Invalid(error.msg);
  }
}

absl::Status ApplyYamlFile(const std::string& path, std::string_view program,
                           const std::vector<Setting>& settings) {
  std::ifstream file(path);
  std::stringstream text;
  // Copying nothing counts as a failure to the library, and an empty file is none.
  if (file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
  if (!file.is_open() || file.bad() || text.bad()) {
    return Invalid(fmt::format("cannot read the settings file {}: {}", path, std::strerror(errno)));
  }
  return ApplyYaml(text.str(), path, program, settings);
}

absl::StatusOr<std::vector<std::string>> NamesInYaml(
    std::string_view text, std::string_view file,
    const std::function<absl::Status(const std::string& name)>& check) {
  std::vector<std::string> names;
  if (text.size() > kMaxFileBytes) return names;
  try {
    const YAML::Node root = YAML::Load(std::string(text));
    if (!root.IsMap()) return names;
    for (const auto& entry : root) {
      if (!entry.first.IsScalar()) return names;
      const std::string name = entry.first.Scalar();
      if (const absl::Status status = check(name); !status.ok()) {
        return Invalid(
            fmt::format("{}:{}: {}", file, entry.first.Mark().line + 1, ToStd(status.message())));
      }
      names.push_back(name);
    }
  } catch (const YAML::Exception& error) {
    return Invalid(
        fmt::format("{}:{}:{}: {}", file, error.mark.line + 1, error.mark.column + 1, error.msg));
  }
  return names;
}

absl::Status ApplyEnvironment(const std::function<const char*(const char*)>& get,
                              std::string_view program, const std::vector<Setting>& settings) {
  for (const Setting& setting : settings) {
    const std::string name = EnvName(program, setting.key);
    const char* value = get(name.c_str());
    if (value == nullptr) continue;
    if (absl::Status status = setting.set(value); !status.ok()) {
      return Invalid(fmt::format("{}: {}", name, ToStd(status.message())));
    }
  }
  return absl::OkStatus();
}

absl::Status ApplyFlags(const std::map<std::string, std::string>& values,
                        const std::vector<Setting>& settings) {
  for (const Setting& setting : settings) {
    const auto value = values.find(setting.key);
    if (value == values.end()) continue;
    if (absl::Status status = setting.set(value->second); !status.ok()) {
      return Invalid(fmt::format("{}: {}", FlagName(setting.key), ToStd(status.message())));
    }
  }
  return absl::OkStatus();
}

std::function<absl::Status(const std::string&)> TextInto(std::string* out) {
  return [out](const std::string& value) {
    *out = value;
    return absl::OkStatus();
  };
}

std::function<absl::Status(const std::string&)> NumberInto(uint64_t least, uint64_t most,
                                                           std::function<void(uint64_t)> set) {
  return [least, most, set = std::move(set)](const std::string& value) -> absl::Status {
    uint64_t number = 0;
    const char* const end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, number);
    if (error != std::errc() || stop != end || number < least || number > most) {
      return Invalid(fmt::format("\"{}\" is not a number from {} to {}", value, least, most));
    }
    set(number);
    return absl::OkStatus();
  };
}

}  // namespace muster
