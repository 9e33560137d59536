#include "agents/slurm/sbatch_script.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "agents/slurm/fields.h"
#include "contract/characters.h"
#include "contract/errors.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

using contract::Quoted;
using Argument = SbatchOption::Argument;

constexpr std::string_view kMark = "#SBATCH";
constexpr std::string_view kCommandLine = "command line";

absl::Status Bad(std::string_view where, std::string_view problem) {
  return contract::BadField("script", fmt::format("{}: {}", where, problem));
}

// isspace(3) in the C locale.
bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// A word and the place that it came from.
struct Word {
  std::string text;
  std::string where;
};

// getopt_long(3) with sbatch's table, stopping at the first word that is no option.
class OptionReader {
 public:
  OptionReader(const std::vector<Word>& words, SbatchSettings* out) : words_(words), out_(out) {}

  // How many words were options and their values.
  absl::StatusOr<size_t> Read() {
    while (next_ < words_.size()) {
      const Word& word = words_[next_];
      if (word.text.size() < 2 || word.text.front() != '-') break;
      ++next_;
      if (word.text == "--") break;
      absl::Status read = word.text.starts_with("--") ? ReadLong(word) : ReadLetters(word);
      if (!read.ok()) return read;
    }
    return next_;
  }

 private:
  void Add(const SbatchOption* option, std::string value, const Word& word) {
    out_->settings.push_back({option, std::move(value), word.where});
  }

  void AddUnknown(std::string text, const Word& word) {
    // Whether it takes the next word is not known; a word that is no option can only be its value.
    while (next_ < words_.size() && !words_[next_].text.starts_with('-') &&
           words_[next_].where == word.where && word.where != kCommandLine) {
      text += " " + words_[next_++].text;
    }
    out_->not_understood.push_back(fmt::format("{} ({})", text, word.where));
  }

  absl::Status TakeNext(const SbatchOption* option, std::string_view name, const Word& word) {
    if (next_ == words_.size()) {
      return Bad(word.where, fmt::format("option {} requires an argument", name));
    }
    Add(option, words_[next_++].text, word);
    return absl::OkStatus();
  }

  absl::Status ReadLong(const Word& word) {
    const std::string_view text = std::string_view(word.text).substr(2);
    const size_t equals = text.find('=');
    std::vector<std::string_view> candidates;
    const SbatchOption* option = FindSbatchOption(text.substr(0, equals), &candidates);
    if (option == nullptr && !candidates.empty()) {
      return Bad(word.where, fmt::format("option {} is ambiguous; it may be --{}", word.text,
                                         fmt::join(candidates, ", --")));
    }
    if (option == nullptr) {
      AddUnknown(word.text, word);
      return absl::OkStatus();
    }
    if (equals != text.npos) {
      if (option->argument == Argument::kNone) {
        return Bad(word.where, fmt::format("option --{} does not allow an argument", option->name));
      }
      Add(option, std::string(text.substr(equals + 1)), word);
      return absl::OkStatus();
    }
    if (option->argument == Argument::kRequired) {
      return TakeNext(option, fmt::format("--{}", option->name), word);
    }
    Add(option, "", word);
    return absl::OkStatus();
  }

  absl::Status ReadLetters(const Word& word) {
    for (size_t i = 1; i < word.text.size(); ++i) {
      const SbatchOption* option = FindSbatchOption(word.text[i]);
      if (option == nullptr) {
        AddUnknown("-" + word.text.substr(i), word);
        return absl::OkStatus();
      }
      if (option->argument == Argument::kNone) {
        Add(option, "", word);
        continue;
      }
      std::string rest = word.text.substr(i + 1);
      if (rest.empty() && option->argument == Argument::kRequired) {
        return TakeNext(option, fmt::format("-{}", option->letter), word);
      }
      Add(option, std::move(rest), word);
      return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  const std::vector<Word>& words_;
  SbatchSettings* out_;
  size_t next_ = 0;
};

// Whether sbatch stops looking for directives at this line.
bool IsCommand(std::string_view line) {
  const auto first = std::find_if_not(line.begin(), line.end(), IsSpace);
  return first != line.end() && *first != '#';
}

absl::Status CheckScript(std::string_view script) {
  if (script.empty()) return Bad("line 1", "the batch script is empty");
  if (script.size() > kMaxBatchScriptBytes) {
    return Bad("line 1", fmt::format("the batch script has {} bytes; Slurm takes at most {}",
                                     script.size(), kMaxBatchScriptBytes));
  }
  if (!script.starts_with("#!")) {
    return Bad("line 1",
               "this is no batch script: its first line must begin with #! and the path "
               "of an interpreter, such as #!/bin/sh");
  }
  if (script.find("\r\n") != script.npos) {
    return Bad("line 1", "the batch script has DOS line breaks (\\r\\n); convert it with dos2unix");
  }
  if (script.find('\0') != script.npos) return Bad("line 1", "the batch script holds a NUL byte");
  return absl::OkStatus();
}

// PBS' and LSF's directives, which sbatch reads in its own way wherever they stand.
bool IsForeign(std::string_view line) {
  return line.starts_with("#PBS") || line.starts_with("#BSUB");
}

}  // namespace

const SbatchSetting* SbatchSettings::Find(std::string_view name) const {
  const auto found = std::find_if(settings.rbegin(), settings.rend(), [&](const auto& setting) {
    return setting.option->name == name;
  });
  return found == settings.rend() ? nullptr : &*found;
}

absl::StatusOr<std::vector<std::string>> SplitDirective(std::string_view text) {
  std::vector<std::string> words;
  size_t at = 0;
  while (true) {
    while (at < text.size() && IsSpace(text[at])) ++at;
    if (at < text.size() && text[at] == ':') {
      return absl::InvalidArgumentError(
          "it has several parts, which a ':' separates; submit it "
          "with sbatch itself");
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

absl::StatusOr<SbatchSettings> ReadSbatchDirectives(std::string_view script) {
  if (absl::Status good = CheckScript(script); !good.ok()) return good;
  SbatchSettings read;
  std::vector<Word> words;
  std::vector<std::string> foreign;
  bool reading = true;
  size_t number = 0;
  for (std::string_view line : Split(script, '\n')) {
    const std::string where = fmt::format("line {}", ++number);
    if (IsForeign(line)) foreign.push_back(fmt::format("{} ({})", line, where));
    if (!reading || !line.starts_with(kMark)) {
      reading = reading && !IsCommand(line);
      continue;
    }
    absl::StatusOr<std::vector<std::string>> split = SplitDirective(line.substr(kMark.size()));
    if (!split.ok()) return Bad(where, std::string(split.status().message()));
    if (!split->empty() && (split->front() == "hetjob" || split->front() == "packjob")) {
      return Bad(where, "it has several parts (hetjob); submit it with sbatch itself");
    }
    for (std::string& word : *split) words.push_back({std::move(word), where});
  }
  const absl::StatusOr<size_t> end = OptionReader(words, &read).Read();
  if (!end.ok()) return end.status();
  if (*end < words.size()) {
    return Bad(words[*end].where,
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
  const absl::StatusOr<size_t> end = OptionReader(placed, &line.options).Read();
  if (!end.ok()) return end.status();
  if (*end < words.size() && words[*end] == ":") {
    return Bad(kCommandLine, "it has several parts (:); submit it with sbatch itself");
  }
  if (line.options.Find("wrap") != nullptr && *end < words.size()) {
    return Bad(kCommandLine, "give a script or --wrap, not both");
  }
  if (*end < words.size()) {
    line.script_path = words[*end];
    line.arguments.assign(words.begin() + static_cast<std::ptrdiff_t>(*end) + 1, words.end());
  }
  return line;
}

SbatchSettings ReadSbatchEnvironment(const std::map<std::string, std::string>& environment) {
  SbatchSettings read;
  for (const auto& [name, value] : environment) {
    const SbatchOption* option = FindSbatchVariable(name);
    if (option != nullptr) {
      const bool has_value = option->argument != Argument::kNone;
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
  SbatchSettings directives;
  if (const SbatchSetting* wrap = line->options.Find("wrap"); wrap != nullptr) {
    submission.script =
        fmt::format("#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{}\n", wrap->value);
  } else {
    absl::StatusOr<SbatchSettings> read = ReadSbatchDirectives(script);
    if (!read.ok()) return read.status();
    directives = *std::move(read);
  }
  SbatchSettings& all = submission.options;
  for (const SbatchSettings& part :
       {directives, ReadSbatchEnvironment(environment), line->options}) {
    for (const SbatchSetting& setting : part.settings) {
      // The weaker setting of the same option goes.
      std::erase_if(all.settings,
                    [&](const SbatchSetting& one) { return one.option == setting.option; });
      all.settings.push_back(setting);
    }
    all.not_understood.insert(all.not_understood.end(), part.not_understood.begin(),
                              part.not_understood.end());
  }
  return submission;
}

}  // namespace muster::slurm
