package muster

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	musterv1 "muster.dev/api/muster/v1"
)

const (
	maxTime       = 36500 * 24 * time.Hour
	maxBytes      = 1 << 50
	maxCPUMillis  = 10_000_000
	maxGPUMillis  = 1_000_000
	thousandth    = 1000
	roundingError = 1e-6
)

var (
	sizeForm  = regexp.MustCompile(`^(\d{1,18}(?:\.\d{1,9})?)(|[KMGT]i?)B?$`)
	countForm = regexp.MustCompile(`^\d{1,9}(\.\d{1,3})?$`)
	gpuType   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_./-]{0,62}$`)
	digits    = regexp.MustCompile(`^[\d.]+$`)
	byteUnits = map[string]int64{"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
)

// size reads bytes, "512M", "1.5G" (powers of 1000), "16Gi" (powers of 1024), with or without a B.
func size(value, field string) (uint64, error) {
	match := sizeForm.FindStringSubmatch(value)
	if match == nil {
		return 0, refused(ErrBadRequest, fmt.Sprintf(`%s is %q; write bytes, or "512M", "16Gi", "32GB"`, field, value))
	}
	exact, _ := new(big.Rat).SetString(match[1])
	exact.Mul(exact, new(big.Rat).SetInt64(byteUnits[match[2]]))
	whole, rest := new(big.Int).QuoRem(exact.Num(), exact.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	if whole.Cmp(big.NewInt(maxBytes)) > 0 {
		return 0, refused(ErrBadRequest, fmt.Sprintf("%s is %s bytes; it is at most 2^50", field, whole))
	}
	return whole.Uint64(), nil
}

// millis gives a number with at most three decimals in thousandths.
func millis(value float64, most uint64, field string) (uint64, error) {
	exact := value * thousandth
	whole := math.Round(exact)
	if !(whole >= 1 && whole <= float64(most)) || math.Abs(exact-whole) > roundingError*max(1, whole) {
		return 0, refused(ErrBadRequest, fmt.Sprintf("%s is %v; it is a number above 0 with at most three decimals, up to %d", field, value,
			most/thousandth))
	}
	return uint64(whole), nil
}

// gpus reads "8", "H100", "H100:8", "H100:0.5"; "0": none.
func gpus(value string) (*musterv1.GpuRequest, error) {
	if value == "0" {
		return &musterv1.GpuRequest{}, nil
	}
	kind, count := "", value
	if at := strings.LastIndex(value, ":"); at >= 0 {
		kind, count = value[:at], value[at+1:]
	} else if !digits.MatchString(value) {
		kind, count = value, "1"
	}
	if (strings.Contains(value, ":") || kind != "" || value == "") && !gpuType.MatchString(kind) {
		return nil, refused(ErrBadRequest, fmt.Sprintf(`GPUs is %q; write a count, a type, or TYPE:COUNT, as in "H100:8"`, value))
	}
	number, known := new(big.Rat).SetString(count)
	if !countForm.MatchString(count) || !known {
		return nil, refused(ErrBadRequest, fmt.Sprintf(`GPUs is %q; write a count, a type, or TYPE:COUNT, as in "H100:8"`, value))
	}
	amount, _ := number.Float64()
	counted, err := millis(amount, maxGPUMillis, "GPUs")
	return &musterv1.GpuRequest{Type: kind, CountMillis: counted}, err
}

func timeLimit(value time.Duration) (*durationpb.Duration, error) {
	if value < 0 || value > maxTime {
		return nil, refused(ErrBadRequest, fmt.Sprintf("Time is %s; it is at most 36500 days, and not negative", value))
	}
	return durationpb.New(value), nil
}
