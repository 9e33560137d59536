#include "contract/roles.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "contract/characters.h"
#include "contract/program.h"
#include "contract/validate.h"
#include "fmt/format.h"

namespace muster::contract {
namespace {

constexpr size_t kMaxRoleNameBytes = 63;

bool IsRoleName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxRoleNameBytes &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return IsLowerLetter(c) || IsDigit(c) || c == '-'; });
}

void CheckNodes(const std::string& field, const v1::Role& role, uint32_t nodes,
                FieldErrors* errors) {
  if (role.first_node() >= nodes) {
    errors->Add(field + ".first_node",
                fmt::format("{}; the job has {} nodes, counted from 0", role.first_node(), nodes));
  } else if (role.nodes() > nodes - role.first_node()) {
    errors->Add(field + ".nodes",
                fmt::format("{} from node {} on; the job has {} nodes: ask for more of them, or "
                            "for fewer here",
                            role.nodes(), role.first_node(), nodes));
  }
}

// Checks the whole, where single roles are good.
void CheckTogether(const v1::JobSpec& spec, FieldErrors* errors) {
  if (spec.command().form_case() != v1::Command::FORM_NOT_SET ||
      spec.command().script_arguments_size() > 0) {
    errors->Add("command", "a job with roles has none of its own; make it a role");
  }
  if (spec.slurm().tasks_per_node() > 1) {
    errors->Add("slurm.tasks_per_node",
                fmt::format("{}; roles start once on each of their nodes: leave it out",
                            spec.slurm().tasks_per_node()));
  }
  uint64_t ranks = 0;
  for (const v1::Role& role : spec.roles()) ranks += role.nodes();
  if (ranks > kMaxNodes) {
    errors->Add("roles", fmt::format("{} ranks in all; use at most {}", ranks, kMaxNodes));
  }
}

}  // namespace

void FillRoleDefaults(v1::JobSpec* spec) {
  for (v1::Role& role : *spec->mutable_roles()) {
    if (role.nodes() == 0 && role.first_node() < spec->nodes())
      role.set_nodes(spec->nodes() - role.first_node());
  }
}

void CheckRoles(const v1::JobSpec& spec, FieldErrors* errors) {
  if (spec.roles_size() > kMaxRoles) {
    errors->Add("roles", fmt::format("{} roles; use at most {}", spec.roles_size(), kMaxRoles));
    return;
  }
  std::set<std::string_view> names;
  for (int i = 0; i < spec.roles_size(); ++i) {
    const v1::Role& role = spec.roles(i);
    const std::string field = fmt::format("roles[{}]", i);
    if (!IsRoleName(role.name())) {
      errors->Add(field + ".name", fmt::format("{} is not a role's name; use 1 to {} of a-z, 0-9 "
                                               "and '-'",
                                               Quoted(role.name()), kMaxRoleNameBytes));
    } else if (!names.insert(role.name()).second) {
      errors->Add(field + ".name",
                  fmt::format("{} is another role's name, too; choose a new one", role.name()));
    }
    CheckCommand(field + ".command", role.command(), errors);
    CheckEnv(field + ".env", role.env(), errors);
    CheckNodes(field, role, spec.nodes(), errors);
  }
  CheckTogether(spec, errors);
}

std::optional<std::pair<int, int>> FindRolesThatShareNodes(const v1::JobSpec& spec) {
  for (int i = 0; i < spec.roles_size(); ++i) {
    const v1::Role& role = spec.roles(i);
    for (int j = 0; j < i; ++j) {
      const v1::Role& other = spec.roles(j);
      if (role.first_node() < other.first_node() + other.nodes() &&
          other.first_node() < role.first_node() + role.nodes()) {
        return std::pair(j, i);
      }
    }
  }
  return std::nullopt;
}

std::vector<uint32_t> FirstRanks(const v1::JobSpec& spec) {
  std::vector<uint32_t> ranks;
  uint32_t next = 0;
  for (const v1::Role& role : spec.roles()) {
    ranks.push_back(next);
    next += role.nodes();
  }
  return ranks;
}

uint32_t RankCount(const v1::JobSpec& spec) {
  const uint32_t nodes = std::max<uint32_t>(1, spec.nodes());
  const uint32_t with_setup = spec.setup().empty() ? 1 : nodes;
  if (spec.slurm().has_batch_script()) return with_setup;
  if (spec.roles().empty()) return nodes;
  uint32_t ranks = 0;
  for (const v1::Role& role : spec.roles()) ranks += role.nodes();
  return std::max(ranks, with_setup);
}

const v1::Role* RoleOfRank(const v1::JobSpec& spec, uint32_t rank) {
  uint32_t next = 0;
  for (const v1::Role& role : spec.roles()) {
    next += role.nodes();
    if (rank < next) return &role;
  }
  return nullptr;
}

}  // namespace muster::contract
