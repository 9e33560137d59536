// The squashfs files that container images are converted to, before a run takes nodes.
//
// A conversion is a Slurm job of its own, on a partition for such work: it goes on when the agent
// restarts, and its name keeps it the only one for its image, also among agents. The run's job
// waits for its end, good or bad, and then sees for itself whether the file is there.
//
// Thread-safe: it keeps nothing but its configuration.
#ifndef MUSTER_AGENTS_SLURM_IMAGE_CACHE_H_
#define MUSTER_AGENTS_SLURM_IMAGE_CACHE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "agents/core/backend.h"
#include "agents/hosts/host.h"
#include "agents/slurm/scheduler.h"
#include "agents/slurm/slurm.h"
#include "contract/image.h"

namespace muster::slurm {

// The text of convert.sh.
std::string_view ConvertScript();

// Whether these are the first bytes of a squashfs file.
bool IsSquashfs(std::string_view bytes);

// What the Slurm job that converts an image is called.
std::string ConversionName(const contract::Image& image);

// That job. `script` is where convert.sh is.
Submission MakeConversion(const SlurmConfig& config, const contract::Image& image,
                          const std::string& script);

class ImageCache {
 public:
  // Both must outlive this object.
  ImageCache(const SlurmConfig& config, hosts::Host* host, Scheduler* scheduler)
      : config_(config), host_(host), scheduler_(scheduler) {}

  struct Ready {
    std::string image;  // what srun's --container-image gets
    // The Slurm job that is converting it; nothing if the file is there, or none is needed.
    std::optional<uint64_t> conversion;
    // Slurm will not have the conversion; all else is empty then.
    std::optional<v1::Failure> refused;
  };
  // Finds the image's file, a conversion under way, or starts one. An error: nobody knows; ask
  // again.
  absl::StatusOr<Ready> Prepare(const contract::Image& image);
  // What Ready::image will be. Asks nobody.
  std::string NameFor(const contract::Image& image) const;

 private:
  bool NeedsFile(const contract::Image& image) const;
  absl::StatusOr<bool> IsThere(const std::string& file);
  absl::StatusOr<std::optional<uint64_t>> UnderWay(const contract::Image& image);
  absl::StatusOr<Ready> Convert(const contract::Image& image);

  const SlurmConfig config_;
  hosts::Host* const host_;
  Scheduler* const scheduler_;
};

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_IMAGE_CACHE_H_
