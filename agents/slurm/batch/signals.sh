#!/bin/bash
# This part of batch.sh passes on signals that users send to a run that goes on (muster scancel -s, or Slurm's
# own scancel).
# shellcheck disable=SC2034,SC2154 # its parts share the variables

# All that would end this shell, by Linux's numbers, but for TERM, KILL, and PIPE, which it may bring upon itself.
signals=(1 2 3 4 5 6 7 8 10 11 12 14 16 24 25 26 27 29 30 31 {34..64})

# heed_signals: this shell is the first process of the batch step, so that what is for the batch script's shell comes here.
heed_signals() {
  local number
  # shellcheck disable=SC2064 # the number is set now
  for number in "${signals[@]}"; do trap "take_signal $number" "$number"; done
}

# take_signal NUMBER: hands it on to the program. The agent says in a file if this is not what is meant: `full`, if Slurm has
# sent it to all processes, or `batch N`, if it stands for a signal that this shell could not take.
take_signal() {
  local to='' number=$1 file=$run_dir/signal
  interrupted=1
  if { read -r to number <"$file"; } 2>/dev/null; then rm -f "$file"; fi
  number=${number:-$1}
  if [[ $to == full ]]; then return; fi
  if [[ $program ]]; then kill "-$number" "$program" 2>/dev/null; else relay "$number"; fi
}
