// docs/concepts.md shows the transition table; this keeps the two the same.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "contract/states.h"
#include "contract/transitions.h"
#include "fmt/format.h"

namespace muster::contract {
namespace {

// One row for each state, with what may follow it.
std::string TableAsMarkdown() {
  std::string table = "| from | to |\n|---|---|\n";
  for (int from = v1::RUN_STATE_ASSIGNED; from <= v1::RunState_MAX; ++from) {
    std::string followers;
    for (const RunTransition& transition : kRunTransitions) {
      if (transition.from != from) continue;
      followers += fmt::format("{}{}", followers.empty() ? "" : ", ", Name(transition.to));
    }
    table += fmt::format("| {} | {} |\n", Name(static_cast<v1::RunState>(from)),
                         followers.empty() ? "(terminal)" : followers);
  }
  return table;
}

TEST(ConceptsPage, ListsExactlyTheTransitionsOfTheTable) {
  std::ifstream file(MUSTER_CONCEPTS_PAGE);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_NE(text.str().find(TableAsMarkdown()), std::string::npos)
      << "docs/concepts.md should hold this table:\n"
      << TableAsMarkdown();
}

}  // namespace
}  // namespace muster::contract
