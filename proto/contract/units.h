// Quantities as people write them. Every parser reads the whole text, or returns INVALID_ARGUMENT
// with a message that quotes the text and shows forms that work.
#ifndef MUSTER_PROTO_CONTRACT_UNITS_H_
#define MUSTER_PROTO_CONTRACT_UNITS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::contract {

// "90", "90s", "15m", "4h", "3.8h", "2d", "1h30m" (a plain number is seconds); Slurm's "MM:SS",
// "HH:MM:SS", "D-HH", "D-HH:MM", "D-HH:MM:SS". Not negative, at most 36500 days.
absl::StatusOr<absl::Duration> ParseDuration(std::string_view text);
// Writes "45s", "1h30m", "3d4h": whole seconds, at most two units, rounded down.
std::string FormatDuration(absl::Duration duration);

// "512", "64K", "1.5G", "16Gi", "32GB" (K, M, G, T are powers of 1000; Ki, Mi, Gi, Ti of 1024; a
// trailing B is optional). At most 2^50 bytes.
absl::StatusOr<uint64_t> ParseBytes(std::string_view text);
// Writes "16Gi", "1.5Gi", "512": powers of 1024, one decimal.
std::string FormatBytes(uint64_t bytes);

// Reads "4" or "0.5" cores as thousandths, with at most three decimals.
absl::StatusOr<uint64_t> ParseCpus(std::string_view text);
std::string FormatCpus(uint64_t cpu_millis);

// Reads "8", "H100", "H100:8", "H100:0.5": type, count or both; the count is 1 if left out. Types
// keep their case. "0": none.
absl::StatusOr<v1::GpuRequest> ParseGpus(std::string_view text);
std::string FormatGpus(const v1::GpuRequest& gpus);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_UNITS_H_
