// Slurm's interface for plugins, which declares the hooks outside of its own extern "C".
#ifndef MUSTER_TESTS_SUPPORT_PYXIS_SPANK_H_
#define MUSTER_TESTS_SUPPORT_PYXIS_SPANK_H_

#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>

extern "C" {
#include <slurm/slurm.h>
#include <slurm/spank.h>
}

#endif  // MUSTER_TESTS_SUPPORT_PYXIS_SPANK_H_
