// Reads container images as people write them, and spells them as each cluster needs it.
#ifndef MUSTER_PROTO_CONTRACT_IMAGE_H_
#define MUSTER_PROTO_CONTRACT_IMAGE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster::contract {

// A plain reference may be this long: as a file's name (255 bytes) it still has room for ".sqsh"
// and the suffix of a file that is being written.
inline constexpr size_t kMaxImageReferenceBytes = 220;

// One image in its normal form, in which each image has one value, however it was written.
struct Image {
  // An absolute path of a squashfs file; all else is empty then.
  std::string path;

  // The user who pulls it, "" if the cluster's credentials tell. Never a password.
  std::string user;
  // In lower case, with the port if it is not the usual one, as "nvcr.io" or "localhost:5000".
  // "docker.io" is Docker Hub, whichever of its names was written.
  std::string registry;
  // Such as "nvidia/tao/tao-toolkit"; Docker Hub's own images are under "library/".
  std::string repository;
  // "latest" if neither tag nor digest was written; "" beside a digest, which decides alone.
  std::string tag;
  // "sha256:" with 64 hexadecimal digits, or "sha512:" with 128.
  std::string digest;

  bool is_file() const { return !path.empty(); }

  friend bool operator==(const Image&, const Image&) = default;
};

// Takes
//   /path/x.sqsh                        a squashfs file (also .sqfs and .squashfs)
//   registry#image:tag                  Pyxis' form
//   docker://[user@]registry#image:tag  Enroot's form
//   registry/image:tag                  the plain form
// each also with "@sha256:..." in place of the tag or behind it. Without '#' the first part is a
// registry if it has a '.' or a ':' or is "localhost", else the image is Docker Hub's.
// INVALID_ARGUMENT for the field "image" says what is wrong and shows a form that works.
absl::StatusOr<Image> ParseImage(std::string_view text);

// Returns srun's --container-image, which is a path or "nvcr.io#nvidia/tao:5.0". Always with '#',
// because older Enroots look for "registry/image" on Docker Hub.
std::string PyxisImage(const Image& image);
// Returns "docker://nvcr.io#nvidia/tao:5.0", for `enroot import`. "" for a file, which needs none.
std::string EnrootUri(const Image& image);
// Returns "nvcr.io/nvidia/tao:5.0", as Kubernetes has it. "" for a file, which only Slurm runs.
std::string OciReference(const Image& image);
// The name of the squashfs file that an image is converted to; images that differ have names that
// differ. "" for a file. The user does not count: who pulls an image does not change it.
std::string SquashFileName(const Image& image);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_IMAGE_H_
