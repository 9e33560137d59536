#include "clients/cpp/slurm/sbatch_script.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "clients/cpp/slurm/sbatch_container.h"
#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/parts.h"
#include "contract/spank_options.h"
#include "fmt/format.h"

namespace muster::client::slurm {
namespace {

using contract::Quoted;
using contract::Split;

// The second one is an old spelling, which sbatch still reads.
constexpr std::array<std::string_view, 2> kMarks = {"#SBATCH", "#SLURM"};

absl::Status BadScript(std::string_view where, std::string_view problem) {
  return contract::BadField(where, problem);
}

// Is isspace(3) in the C locale.
bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Returns whether sbatch stops looking for directives at this line.
bool IsCommand(std::string_view line) {
  const auto first = std::find_if_not(line.begin(), line.end(), IsSpace);
  return first != line.end() && *first != '#';
}

std::string HeterogeneousJob(std::string_view mark) {
  return fmt::format(
      "it is a heterogeneous job ({}), whose components Muster cannot start together; submit it "
      "with Slurm's own sbatch, or each component as a job of its own",
      mark);
}

// Returns whether a variable with this value switches an option on that has none.
bool IsYes(std::string_view value) {
  const auto number = contract::ParseNumber<uint32_t>(value);
  return value.empty() || value == "yes" || number.value_or(0) != 0;
}

absl::Status CheckScript(std::string_view script) {
  if (script.empty()) return BadScript("line 1", "Batch script is empty!");
  if (script.size() > kMaxBatchScriptBytes) {
    return BadScript("line 1", fmt::format("the batch script has {} bytes; Slurm takes at most {}",
                                           script.size(), kMaxBatchScriptBytes));
  }
  if (!script.starts_with("#!")) {
    return BadScript(
        "line 1",
        "This does not look like a batch script. The first line must start with #! followed "
        "by the path to an interpreter. For instance: #!/bin/sh");
  }
  if (script.find("\r\n") != script.npos) {
    return BadScript("line 1",
                     "Batch script contains DOS line breaks (\\r\\n) instead of expected UNIX line "
                     "breaks (\\n); convert it with dos2unix");
  }
  if (script.find('\0') != script.npos)
    return BadScript("line 1", "the batch script holds a NUL byte");
  if (contract::IsUtf8(script)) return absl::OkStatus();
  const std::vector<std::string_view> lines = Split(script, '\n');
  const auto foreign = std::find_if_not(lines.begin(), lines.end(), contract::IsUtf8);
  return BadScript(
      fmt::format("line {}", foreign - lines.begin() + 1),
      "it is not UTF-8, and Muster takes no other text; convert the script, for example: iconv -f "
      "latin1 -t utf8 SCRIPT >CONVERTED");
}

// Returns whether an option of a variable gives way to another one that was given: memory is for a
// node, a core or a GPU, and Pyxis looks at a variable only where there is no option, on or off.
bool IsExcluded(const Option& option, const Settings& given) {
  if (option.variable.starts_with("PYXIS_"))
    return given.Find(option.name) != nullptr || given.Find(OppositeOf(option.name)) != nullptr;
  constexpr std::array<std::string_view, 3> kMemory = {"mem", "mem-per-cpu", "mem-per-gpu"};
  const auto is_of_memory = [&](std::string_view name) {
    return std::find(kMemory.begin(), kMemory.end(), name) != kMemory.end();
  };
  return is_of_memory(option.name) &&
         std::any_of(given.settings.begin(), given.settings.end(), [&](const Setting& one) {
           return one.option != &option && is_of_memory(one.option->name);
         });
}

// PBS' and LSF's directives, which sbatch reads in its own way wherever they stand.
bool IsForeign(std::string_view line) {
  return line.starts_with("#PBS") || line.starts_with("#BSUB");
}

// Writes "--name value (line 3)" as "--name=value".
std::string SpankOption(std::string_view not_understood) {
  std::string option(not_understood.substr(0, not_understood.rfind(" (")));
  const size_t blank = option.find(' ');
  if (blank < option.find('=')) option[blank] = '=';
  return option;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> SplitDirective(std::string_view text) {
  std::vector<std::string> words;
  size_t at = 0;
  while (true) {
    const size_t begin = at;
    while (at < text.size() && IsSpace(text[at])) ++at;
    if (at < text.size() && text[at] == ':') {
      // A line "hetjob" is what separates components in a script; sbatch takes no ':' either.
      return absl::InvalidArgumentError(fmt::format("Unexpected `:` in [{}]", text.substr(begin)));
    }
    std::string word;
    char quote = 0;
    for (; at < text.size() && (quote != 0 || !IsSpace(text[at])); ++at) {
      const char c = text[at];
      if (c == '\\') {
        // Out of quotes a blank ends the word all the same, and the backslash is gone.
        if (++at == text.size() || (quote == 0 && IsSpace(text[at]))) break;
        word += text[at];
      } else if (quote != 0 && c == quote) {
        quote = 0;
      } else if (quote == 0 && (c == '"' || c == '\'')) {
        quote = c;
      } else if (quote == 0 && c == '#') {
        at = text.size();  // a comment
        break;
      } else {
        word += c;
      }
    }
    if (quote != 0) {
      return absl::InvalidArgumentError(fmt::format("unmatched {} in {}", quote, Quoted(text)));
    }
    // sbatch takes an empty word, also one of quotes only, for the line's end.
    if (word.empty()) return words;
    if (word.size() > kMaxDirectiveWordBytes) {
      return absl::InvalidArgumentError(fmt::format("a word of {} bytes; sbatch takes at most {}",
                                                    word.size(), kMaxDirectiveWordBytes));
    }
    words.push_back(std::move(word));
  }
}

absl::StatusOr<Settings> ReadSbatchDirectives(std::string_view script) {
  if (absl::Status good = CheckScript(script); !good.ok()) return good;
  Settings read;
  std::vector<Word> words;
  std::vector<std::string> foreign;
  bool reading = true;
  size_t number = 0;
  for (std::string_view line : Split(script, '\n')) {
    const std::string where = fmt::format("line {}", ++number);
    if (IsForeign(line)) foreign.push_back(fmt::format("{} ({})", line, where));
    const auto* mark = std::find_if(kMarks.begin(), kMarks.end(),
                                    [&](std::string_view one) { return line.starts_with(one); });
    if (!reading || mark == kMarks.end()) {
      reading = reading && !IsCommand(line);
      continue;
    }
    absl::StatusOr<std::vector<std::string>> split = SplitDirective(line.substr(mark->size()));
    if (!split.ok()) return BadScript(where, std::string(split.status().message()));
    if (!split->empty() && (split->front() == "hetjob" || split->front() == "packjob")) {
      return BadScript(where, HeterogeneousJob(split->front()));
    }
    for (std::string& word : *split) words.push_back({std::move(word), where});
  }
  const absl::StatusOr<size_t> end = ReadOptions(SbatchOptions(), words, &read);
  if (!end.ok()) return end.status();
  if (*end < words.size()) {
    return BadScript(
        words[*end].where,
        fmt::format("invalid directive {}: it is neither an option nor the value of one; "
                    "quote values that hold a blank",
                    Quoted(words[*end].text)));
  }
  if (read.Find("ignore-pbs") == nullptr) {
    std::move(foreign.begin(), foreign.end(), std::back_inserter(read.not_understood));
  }
  return read;
}

absl::StatusOr<SbatchCommandLine> ReadSbatchCommandLine(const std::vector<std::string>& words) {
  std::vector<Word> placed;
  for (const std::string& word : words) placed.push_back({word, std::string(kCommandLine)});
  SbatchCommandLine line;
  const absl::StatusOr<size_t> end = ReadOptions(SbatchOptions(), placed, &line.options);
  if (!end.ok()) return end.status();
  if (*end < words.size() && words[*end] == ":") {
    return BadScript(kCommandLine, HeterogeneousJob("a ':' between components"));
  }
  if (line.options.Find("wrap") != nullptr && *end < words.size()) {
    return BadScript(kCommandLine, "give a script or --wrap, not both");
  }
  if (*end < words.size()) {
    line.script_path = words[*end];
    line.arguments.assign(words.begin() + static_cast<std::ptrdiff_t>(*end) + 1, words.end());
  }
  return line;
}

Settings ReadSbatchEnvironment(const std::map<std::string, std::string>& environment) {
  Settings read;
  for (const auto& [name, value] : environment) {
    const Option* option = FindSbatchVariable(name);
    if (option != nullptr) {
      const bool has_value = option->argument != Option::Argument::kNone;
      if (has_value || IsYes(value))
        read.settings.push_back({option, has_value ? value : "", name});
    } else if (name.starts_with("SBATCH_")) {
      read.not_understood.push_back(fmt::format("{} (environment)", name));
    }
  }
  return read;
}

absl::StatusOr<SbatchSubmission> ReadSbatch(const std::vector<std::string>& words,
                                            const std::map<std::string, std::string>& environment,
                                            std::string_view script) {
  absl::StatusOr<SbatchCommandLine> line = ReadSbatchCommandLine(words);
  if (!line.ok()) return line.status();
  SbatchSubmission submission;
  submission.script = script;
  submission.arguments = std::move(line->arguments);
  Settings directives;
  if (const Setting* wrap = line->options.Find("wrap"); wrap != nullptr) {
    submission.script =
        fmt::format("#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{}\n", wrap->value);
  } else {
    absl::StatusOr<Settings> read = ReadSbatchDirectives(script);
    if (!read.ok()) return read.status();
    directives = *std::move(read);
  }
  Settings variables = ReadSbatchEnvironment(environment);
  std::erase_if(variables.settings, [&](const Setting& one) {
    return IsExcluded(*one.option, directives) || IsExcluded(*one.option, line->options);
  });
  Settings& all = submission.options;
  for (const Settings& part : {directives, variables, line->options}) {
    for (const Setting& setting : part.settings) {
      // The weaker setting of the same option goes, except for those that add up.
      std::erase_if(all.settings, [&](const Setting& one) {
        return one.option == setting.option && one.option->name != "mail-type";
      });
      all.settings.push_back(setting);
    }
    all.not_understood.insert(all.not_understood.end(), part.not_understood.begin(),
                              part.not_understood.end());
  }
  // The option is about the script's directives wherever it was given.
  if (all.Find("ignore-pbs") != nullptr) std::erase_if(all.not_understood, IsForeign);
  return submission;
}

bool MayHaveSpankOptions(const SbatchSubmission& submission) {
  const auto& unknown = submission.options.not_understood;
  return std::any_of(unknown.begin(), unknown.end(), [](const std::string& one) {
    return !contract::SpankNameOf(SpankOption(one)).empty();
  });
}

void TakeSpankOptions(const std::set<std::string>& allowed, SbatchSubmission* submission) {
  // The stronger one comes later, and each option is given once.
  std::map<std::string, std::string> taken;
  std::erase_if(submission->options.not_understood, [&](const std::string& one) {
    const std::string option = SpankOption(one);
    const std::string name(contract::SpankNameOf(option));
    if (!allowed.contains(name)) return false;
    taken[name] = option;
    return true;
  });
  for (auto& [name, option] : taken) submission->spank_options.push_back(std::move(option));
}

}  // namespace muster::client::slurm
