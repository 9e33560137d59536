#include "broker/app/project_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "broker/app/arguments.h"
#include "broker/auth/projects.h"
#include "contract/characters.h"
#include "contract/counted.h"
#include "contract/errors.h"
#include "contract/image.h"
#include "contract/slurm_only.h"
#include "contract/text.h"

namespace muster::broker {
namespace {

// Keeps a message readable.
constexpr size_t kMostListed = 8;

// Says that a job may be submitted into the project by nobody, or not by this caller.
absl::Status CheckMay(const auth::ProjectTable& projects, const store::Scope& scope,
                      const Principal& principal, const std::string& name,
                      std::string_view prefix) {
  const std::map<std::string, std::string> metadata = {{"field", fmt::format("{}project", prefix)},
                                                       {"project", name}};
  if (!scope.Contains(name, principal.user)) {
    return contract::Error(
        absl::StatusCode::kPermissionDenied, "PROJECT_NOT_ALLOWED",
        fmt::format("{}project: {} may submit no jobs into {}, or there is no such project; muster "
                    "projects lists yours, and an admin of one makes you a member",
                    prefix, principal.user, contract::Quoted(name)),
        metadata);
  }
  const auth::Project* const project = projects.Find(name);
  if (project == nullptr && !projects.is_open()) {
    return contract::Error(
        absl::StatusCode::kNotFound, "NO_SUCH_PROJECT",
        fmt::format("{}project: there is no project {}; muster projects lists them, and an admin "
                    "of the broker makes one with muster project create",
                    prefix, contract::Quoted(name)),
        metadata);
  }
  if (project != nullptr && project->archived_micros != 0) {
    return contract::Error(
        absl::StatusCode::kFailedPrecondition, "PROJECT_ARCHIVED",
        fmt::format("{}project: {} is archived and takes no jobs; name another project, or have an "
                    "admin of the broker restore it with muster project set {} --restore",
                    prefix, contract::Quoted(name), name),
        metadata);
  }
  return absl::OkStatus();
}

// The check of one job against the limits of its project.
class Checking {
 public:
  Checking(const auth::Project& project, const v1::JobSpec& spec, std::string_view prefix)
      : project_(project), spec_(spec), prefix_(prefix) {}

  absl::Status Check() {
    const v1::Placement& placement = spec_.placement();
    for (int i = 0; i < placement.clusters_size(); ++i) {
      CheckName(fmt::format("placement.clusters[{}]", i), placement.clusters(i),
                project_.limits.clusters);
    }
    CheckPools();
    CheckAccount();
    CheckImage();
    return errors_.ToStatus();
  }

 private:
  void CheckPools() {
    const std::vector<std::string>& pools = project_.limits.pools;
    if (!placement_pool().empty()) CheckName("placement.pool", placement_pool(), pools);
    const std::string& space = spec_.kubernetes().namespace_();
    if (!space.empty()) CheckName("kubernetes.namespace", space, pools);
    std::string_view partitions = spec_.slurm().partition();
    while (!partitions.empty()) {
      const size_t comma = partitions.find(',');
      CheckName("slurm.partition", partitions.substr(0, comma), pools);
      partitions.remove_prefix(comma == partitions.npos ? partitions.size() : comma + 1);
    }
  }
  const std::string& placement_pool() const { return spec_.placement().pool(); }

  // An account in a batch script itself has no effect: sbatch is told the job's.
  void CheckAccount() {
    const std::vector<std::string>& accounts = project_.limits.accounts;
    const std::string& account = spec_.slurm().account();
    if (!account.empty()) return CheckName("slurm.account", account, accounts);
    if (accounts.empty() || contract::WhySlurmOnly(spec_).empty()) return;
    Add("slurm.account",
        fmt::format("is empty, and the jobs of the project {} name one of {}",
                    contract::Quoted(project_.name), contract::ListedUpTo(kMostListed, accounts)));
  }

  void CheckImage() {
    const std::vector<std::string>& images = project_.limits.images;
    if (images.empty() || spec_.image().empty()) return;
    const bool is_allowed = std::any_of(
        images.begin(), images.end(),
        [&](const std::string& allowed) { return AllowsImage(allowed, spec_.image()); });
    if (!is_allowed) Refuse("image", spec_.image(), images);
    // It would be used as it is, whatever image it was made of.
    if (spec_.slurm().container().name().empty()) return;
    Add("slurm.container.name",
        fmt::format("{} may be a container of another image, and the project {} allows only some; "
                    "leave it out",
                    contract::Quoted(spec_.slurm().container().name()),
                    contract::Quoted(project_.name)));
  }

  void CheckName(std::string_view field, std::string_view value,
                 const std::vector<std::string>& allowed) {
    if (allowed.empty() || std::find(allowed.begin(), allowed.end(), value) != allowed.end())
      return;
    Refuse(field, value, allowed);
  }

  void Refuse(std::string_view field, std::string_view value,
              const std::vector<std::string>& allowed) {
    Add(field,
        fmt::format("the project {} may not use {}; choose one of {}, or ask an admin of the "
                    "broker to allow it (muster project set)",
                    contract::Quoted(project_.name), contract::Quoted(value),
                    contract::ListedUpTo(kMostListed, allowed)));
  }

  void Add(std::string_view field, std::string_view text) {
    errors_.Add(fmt::format("{}{}", prefix_, field), text);
  }

  const auth::Project& project_;
  const v1::JobSpec& spec_;
  const std::string_view prefix_;
  contract::FieldErrors errors_;
};

bool HasDots(std::string_view path) {
  return path.find("/../") != path.npos || path.ends_with("/..");
}

}  // namespace

std::shared_ptr<const auth::ProjectTable> ProjectsOf(const Services& services) {
  if (services.projects != nullptr) return services.projects->Read();
  return std::make_shared<const auth::ProjectTable>(
      std::map<std::string, auth::Project, std::less<>>());
}

Principal WithMemberships(const auth::ProjectTable& projects, Principal principal) {
  const bool is_known = principal.refusal.ok() && principal.known_by != KnownBy::kNobody &&
                        principal.known_by != KnownBy::kCertificate;
  principal.memberships = is_known ? projects.MembershipsOf(principal.user, principal.groups)
                                   : std::vector<auth::Membership>();
  return principal;
}

absl::Status StreamRights::Check() {
  // Tables are never changed, so that the same one says the same.
  if (services_.projects == nullptr) return absl::OkStatus();
  std::shared_ptr<const auth::ProjectTable> now = services_.projects->Read();
  if (now == seen_) return absl::OkStatus();
  seen_ = std::move(now);
  const auto scope = Authorize(WithMemberships(*seen_, principal_), use_case_);
  return scope.ok() && *scope == scope_ ? absl::OkStatus() : RightsChanged();
}

absl::Status CheckProject(const auth::ProjectTable& projects, const store::Scope& scope,
                          const Principal& principal, const v1::JobSpec& spec,
                          std::string_view prefix) {
  if (absl::Status may = CheckMay(projects, scope, principal, spec.project(), prefix); !may.ok())
    return may;
  const auth::Project* const project = projects.Find(spec.project());
  if (project == nullptr) return absl::OkStatus();
  return Checking(*project, spec, prefix).Check();
}

bool AllowsImage(const std::string& allowed, std::string_view image) {
  const absl::StatusOr<contract::Image> parsed = contract::ParseImage(image);
  if (!parsed.ok() || HasDots(parsed->path)) return false;
  const std::string name = parsed->is_file() ? parsed->path : contract::OciReference(*parsed);
  if (!name.starts_with(allowed)) return false;
  // A name matches by whole parts alone: a project that has "nvidia" does not have "nvidia-labs".
  constexpr std::string_view kEnds = "/:@";
  return name.size() == allowed.size() || kEnds.find(name[allowed.size()]) != kEnds.npos ||
         kEnds.find(allowed.back()) != kEnds.npos;
}

}  // namespace muster::broker
