// Defines the marks of the lines that batch.sh writes into slurm.out, among those of Slurm. They
// are a format: what follows a mark may change its words, and a mark may not, because a run keeps
// the batch.sh that it was launched with.
#ifndef MUSTER_AGENTS_SLURM_SLURM_OUTPUT_H_
#define MUSTER_AGENTS_SLURM_SLURM_OUTPUT_H_

#include <string_view>

namespace muster::slurm {

// A line for people, which failures quote (note, in begin.sh).
inline constexpr std::string_view kNoteMark = "muster: ";
// One of these about the image, as enroot or the conversion said it (find_image, in container.sh).
inline constexpr std::string_view kImageMark = "muster: image: ";
// A later start of the Slurm job begins here (restart, in claim.sh).
inline constexpr std::string_view kStartMark = "muster-start job=";

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_SLURM_OUTPUT_H_
