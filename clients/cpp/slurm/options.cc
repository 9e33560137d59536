#include "clients/cpp/slurm/options.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "contract/errors.h"
#include "fmt/format.h"

namespace muster::client::slurm {
namespace {

using Argument = Option::Argument;

absl::Status BadOption(std::string_view where, std::string_view problem) {
  return contract::BadField(where, problem);
}

// getopt_long(3), stopping at the first word that is no option.
class OptionReader {
 public:
  OptionReader(OptionTable table, const std::vector<Word>& words, Settings* out)
      : table_(table), words_(words), out_(out) {}

  // Returns the number of words that were options and their values.
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
  void Add(const Option* option, std::string value, const Word& word) {
    out_->settings.push_back({option, std::move(value), word.where});
  }

  void AddUnknown(std::string text, const Word& word) {
    // A reader cannot know whether it takes the next word; a word that is no option can only be its
    // value.
    while (next_ < words_.size() && !words_[next_].text.starts_with('-') &&
           words_[next_].where == word.where && word.where != kCommandLine) {
      text += " " + words_[next_++].text;
    }
    out_->not_understood.push_back(fmt::format("{} ({})", text, word.where));
  }

  absl::Status TakeNext(const Option* option, std::string_view name, const Word& word) {
    if (next_ == words_.size()) {
      return BadOption(word.where, fmt::format("option {} requires an argument", name));
    }
    Add(option, words_[next_++].text, word);
    return absl::OkStatus();
  }

  absl::Status ReadLong(const Word& word) {
    const std::string_view text = std::string_view(word.text).substr(2);
    const size_t equals = text.find('=');
    std::vector<std::string_view> candidates;
    const Option* option = FindOption(table_, text.substr(0, equals), &candidates);
    if (option == nullptr && !candidates.empty()) {
      return BadOption(word.where, fmt::format("option {} is ambiguous; it may be --{}", word.text,
                                               fmt::join(candidates, ", --")));
    }
    if (option == nullptr) {
      AddUnknown(word.text, word);
      return absl::OkStatus();
    }
    if (equals != text.npos) {
      if (option->argument == Argument::kNone) {
        return BadOption(word.where,
                         fmt::format("option --{} does not allow an argument", option->name));
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
      const Option* option = FindOption(table_, word.text[i]);
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

  const OptionTable table_;
  const std::vector<Word>& words_;
  Settings* const out_;
  size_t next_ = 0;
};

}  // namespace

const Option* FindOption(OptionTable table, std::string_view name,
                         std::vector<std::string_view>* candidates) {
  const Option* found = nullptr;
  for (const Option& option : table) {
    if (name.empty()) break;
    if (option.name == name || option.other_name == name) return &option;
    if (!option.name.starts_with(name) && !option.other_name.starts_with(name)) continue;
    candidates->push_back(option.name);
    found = &option;
  }
  return candidates->size() == 1 ? found : nullptr;
}

const Option* FindOption(OptionTable table, char letter) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const auto& option) {
    return letter != 0 && option.letter == letter;
  });
  return found == table.end() ? nullptr : &*found;
}

const Setting* Settings::Find(std::string_view name) const {
  const auto found = std::find_if(settings.rbegin(), settings.rend(), [&](const auto& setting) {
    return setting.option->name == name;
  });
  return found == settings.rend() ? nullptr : &*found;
}

absl::StatusOr<size_t> ReadOptions(OptionTable table, const std::vector<Word>& words,
                                   Settings* out) {
  return OptionReader(table, words, out).Read();
}

absl::StatusOr<CommandWords> ReadCommandWords(OptionTable table,
                                              const std::vector<std::string>& words) {
  std::vector<Word> rest;
  for (const std::string& word : words) rest.push_back({word, std::string(kCommandLine)});
  CommandWords read;
  bool only_operands = false;
  while (!rest.empty()) {
    const absl::StatusOr<size_t> end =
        only_operands ? size_t{0} : ReadOptions(table, rest, &read.options);
    if (!end.ok()) return end.status();
    only_operands = only_operands || (*end > 0 && rest[*end - 1].text == "--");
    rest.erase(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(*end));
    if (rest.empty()) break;
    read.operands.push_back(std::move(rest.front().text));
    rest.erase(rest.begin());
  }
  if (!read.options.not_understood.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("unrecognized option {}", read.options.not_understood.front()));
  }
  return read;
}

}  // namespace muster::client::slurm
