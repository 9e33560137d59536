#include "clients/cli/names_behind_dashes.h"

#include <algorithm>

#include "clients/cli/own_verbs.h"

namespace muster::cli {
namespace {

// No word that somebody types can hold it.
constexpr char kMark = '\0';

}  // namespace

std::vector<std::string> MarkNames(const std::vector<const char*>& words) {
  const auto dashes = std::find(words.begin(), words.end(), kEndOfFlags);
  std::vector<std::string> marked(words.begin(), dashes);
  for (auto word = dashes; word != words.end(); ++word) {
    if (word != dashes) marked.push_back(std::string(1, kMark) + *word);
  }
  return marked;
}

std::string WithoutMark(std::string word) {
  if (word.starts_with(kMark)) word.erase(0, 1);
  return word;
}

void TakeMarks(CLI::App* app) {
  for (CLI::Option* option : app->get_options()) {
    if (option->get_positional()) option->transform(WithoutMark);
  }
  for (CLI::App* verb : app->get_subcommands({})) TakeMarks(verb);
}

}  // namespace muster::cli
