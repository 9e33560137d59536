#include "contract/failure_patterns.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <vector>

#include "contract/characters.h"

namespace muster::contract {
namespace {

constexpr v1::FailureClass kProgram = v1::FAILURE_CLASS_PROGRAM;
constexpr v1::FailureClass kInfra = v1::FAILURE_CLASS_INFRA;
constexpr v1::FailureClass kOom = v1::FAILURE_CLASS_OOM;
constexpr v1::FailureClass kImage = v1::FAILURE_CLASS_IMAGE;

struct Row {
  std::string_view name;
  std::string_view regex;  // re2, without regard to case, searched in each line
  v1::FailureClass failure_class;
  bool retriable;
  std::string_view remedy;
  bool needs_gpus = false;  // nothing of a run without GPUs
};

constexpr bool kNeedsGpus = true;
constexpr std::string_view kSmaller = "Use a smaller batch or model, or GPUs with more memory.";
constexpr std::string_view kFaultyGpu =
    "A GPU or its driver is at fault; it is worth another try on another node. Tell the cluster's "
    "operator the node's name.";
constexpr std::string_view kNetwork =
    "The network between the nodes failed; it is worth another try. If it fails again, tell the "
    "cluster's operator the nodes' names.";
constexpr std::string_view kCredentials =
    "Check the image's name, and that the cluster has credentials for its registry.";

constexpr std::array kRows = {
    // Faults of the program itself.
    Row{"cuda-out-of-memory",
        R"(CUDA out of memory|CUDA error: out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|torch(\.cuda)?\.OutOfMemoryError|Cuda failure.*out of memory|CUBLAS_STATUS_ALLOC_FAILED)",
        kOom, false, kSmaller},
    Row{"device-assert", R"(device-side assert triggered|cudaErrorAssert|CUDA_ERROR_ASSERT)",
        kProgram, false,
        "An assertion of the program failed on the GPU, often an index or a label out of range; "
        "run it with CUDA_LAUNCH_BLOCKING=1 to see where."},
    Row{"illegal-memory-access",
        R"(illegal memory access was encountered|misaligned address|cudaErrorIllegalAddress)",
        kProgram, false,
        "The program read or wrote GPU memory that is not its own; run it with "
        "CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer to see where."},
    Row{"nccl-misuse", R"(nccl(Invalid(Argument|Usage)))", kProgram, false,
        "NCCL was called wrongly: two ranks on one GPU, or ranks that do not agree."},
    Row{"host-out-of-memory",
        R"(oom[-_]kill|OOM Killed|Out of memory: Killed process|Exceeded job memory limit|DefaultCPUAllocator: (not enough|can't allocate) memory)",
        kOom, false,
        "Ask for more memory, or make the program use less (fewer workers, a smaller batch)."},
    // The GPU, its driver, the links between GPUs and nodes.
    Row{"gpu-lost", R"(GPU.{0,80}fallen off the bus|Unable to determine the device handle for GPU)",
        kInfra, true, kFaultyGpu, kNeedsGpus},
    Row{"gpu-memory-fault",
        R"(uncorrectable (double-bit )?ECC error|ECC error.{0,40}(uncorrect|double bit)|cudaErrorECCUncorrectable)",
        kInfra, true, kFaultyGpu, kNeedsGpus},
    // Databases have xids, too.
    Row{"xid",
        R"(NVRM: Xid|\bGPU.{0,80}\bXid\b.{0,40}(error|\b\d{2,3}\b)|\bXid\b.{0,40}(error|\b\d{2,3}\b).{0,80}\bGPU)",
        kInfra, true, kFaultyGpu, kNeedsGpus},
    Row{"driver-too-old", R"(NVIDIA driver.{0,80}too old|CUDA driver version is insufficient)",
        kInfra, true,
        "The node's driver is older than the program's CUDA; use nodes with a newer driver, or an "
        "image with an older CUDA.",
        kNeedsGpus},
    Row{"no-gpu",
        R"(no CUDA-capable device|No CUDA GPUs are available|cuda\.is_available\(\).{0,20}False|GPU.{0,20}not found)",
        kInfra, true,
        "The program saw none of the GPUs that the job asks for; the node is at fault, or the "
        "program.",
        kNeedsGpus},
    Row{"cuda-start",
        R"(CUDA (driver )?initialization (failed|.{0,80}error)|cuInit.{0,40}failed|CUDA_ERROR_(NOT_INITIALIZED|SYSTEM_NOT_READY|SYSTEM_DRIVER_MISMATCH)|system not yet initialized)",
        kInfra, true, kFaultyGpu, kNeedsGpus},
    Row{"gpu-hot", R"(GPU.{0,40}temperature.{0,40}(exceed|critical|shutdown|too high))", kInfra,
        true, kFaultyGpu, kNeedsGpus},
    Row{"nccl-transport",
        R"(nccl(System|Internal|Remote)Error|NCCL WARN.{0,120}(Connection (refused|reset|timed out|closed)|No route to host|Broken pipe))",
        kInfra, true, kNetwork},
    Row{"infiniband",
        R"((InfiniBand|\bRDMA\b|\bibv_\w+|\bmlx5_\d+).{0,80}(error|failed|failure)|IBV_WC_\w*ERR|Got completion.{0,80}with error)",
        kInfra, true, kNetwork},
    Row{"node-failed", R"(DUE TO NODE FAILURE|Node failure on|Communication connection failure)",
        kInfra, true, "A node of the run failed; it is worth another try."},
    Row{"stale-file-handle",
        R"(Stale file handle|Transport endpoint is not connected|Remote I/O error)", kInfra, true,
        "A file system failed under the program; it is worth another try."},
    // The container image.
    Row{"image-checksum", R"(\[ERROR\].{0,40}Checksum mismatch)", kImage, true,
        "The image came damaged from its registry; it is worth another try."},
    Row{"image-credentials", R"(Could not process JSON input|returned error code: (401|403))",
        kImage, false, kCredentials},
    Row{"image-not-found",
        R"(returned error code: 404|Invalid image reference|\[ERROR\] No such file or directory: \S+\.(sqsh|sqfs|squashfs))",
        kImage, false, "Check the image's name and tag."},
    Row{"image-format",
        R"(Invalid image format|pyxis: failed to (import docker image|create container filesystem))",
        kImage, false,
        "Check that the image is there and whole; the lines around this one tell more."},
    Row{"no-pyxis", R"(srun: unrecognized option.{0,5}--container-)", kImage, false,
        "The cluster has no Pyxis and so no containers; use another cluster, or no image."},
    // Faults that only a person can mend.
    Row{"collective-timeout", R"(Watchdog caught collective operation timeout)", kProgram, false,
        "A rank waited in vain for the others; look at the log of the rank that stopped first."},
    // These are the words of dash, which is /bin/sh on Debian and Ubuntu, always with the line's
    // number.
    Row{"script-for-bash",
        R"(: [0-9]+: (((source|\[\[|shopt|pushd|popd|declare|typeset): not found)|)"
        R"((set: Illegal option -o pipefail)|(Syntax error: ("\(" unexpected|redirection unexpected|)"
        R"(Bad for loop variable))|(Bad substitution)))",
        kProgram, false,
        "The script is run by /bin/sh, which is no bash there: let it begin with a line of its "
        "own, #!/bin/bash."},
    Row{"disk-full", R"(No space left on device|Disk quota exceeded)", kProgram, false,
        "Free some space where the program writes; /dev/shm counts as memory."},
    Row{"module-missing", R"(ModuleNotFoundError|ImportError:)", kProgram, false,
        "A Python module is missing; install it in setup, or use an image that has it."},
    Row{"file-missing", R"(FileNotFoundError|No such file or directory)", kProgram, false,
        "A file is missing; check that its path exists on the nodes of this cluster."},
    Row{"segmentation-fault", R"(Segmentation fault|SIGSEGV)", kProgram, false,
        "The program accessed memory that is not its own."},
};

// Returns a line of a log; a progress bar's '\r' ends one as well.
std::string_view LineAround(std::string_view text, size_t at) {
  const size_t begin = text.find_last_of("\r\n", at);
  const size_t from = begin == text.npos ? 0 : begin + 1;
  return text.substr(from, text.find_first_of("\r\n", at) - from);
}

std::string Plain(std::string_view line) {
  std::string plain;
  for (std::string_view rest = CutBetweenCharacters(line, kMaxQuotedLineBytes); !rest.empty();) {
    const size_t size = CharacterBytes(rest);
    const std::string_view character = rest.substr(0, std::max<size_t>(size, 1));
    plain += size == 0 || HasControlCharacter(character) ? " " : character;
    rest.remove_prefix(character.size());
  }
  return plain;
}

}  // namespace

std::string_view RemedyForSign(std::string_view pattern) {
  const auto* found =
      std::find_if(kRows.begin(), kRows.end(), [&](const Row& row) { return row.name == pattern; });
  return found == kRows.end() ? std::string_view() : found->remedy;
}

struct FailurePatterns::Table {
  std::vector<std::unique_ptr<RE2>> rows;  // as in kRows
};

FailurePatterns::FailurePatterns()
    : table_([] {
        RE2::Options options;
        options.set_encoding(RE2::Options::EncodingLatin1);  // logs are bytes
        options.set_case_sensitive(false);
        options.set_never_nl(true);
        options.set_log_errors(false);
        auto table = std::make_unique<Table>();
        for (const Row& row : kRows) {
          table->rows.push_back(
              std::make_unique<RE2>(re2::StringPiece(row.regex.data(), row.regex.size()), options));
        }
        return table;
      }()) {}

FailurePatterns::~FailurePatterns() = default;

std::optional<LogVerdict> FailurePatterns::Find(std::string_view log_tail,
                                                bool may_have_gpus) const {
  if (log_tail.size() > kMaxLogTailBytes) {
    log_tail.remove_prefix(log_tail.size() - kMaxLogTailBytes);
  }
  const re2::StringPiece text(log_tail.data(), log_tail.size());
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].needs_gpus && !may_have_gpus) continue;
    re2::StringPiece match;
    if (!table_->rows[i]->Match(text, 0, text.size(), RE2::UNANCHORED, &match, 1)) continue;
    const Row& row = kRows[i];
    const auto at = static_cast<size_t>(match.data() - text.data());
    return LogVerdict{std::string(row.name), i, row.failure_class, row.retriable,
                      Plain(LineAround(log_tail, at))};
  }
  return std::nullopt;
}

}  // namespace muster::contract
