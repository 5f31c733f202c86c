// CUDA on a CPU, for the kernels of this folder: what a file includes in place of CUDA's and torch's headers.
//
// A launch runs its blocks one after the other; the threads of a block are fibers that take turns at barriers, shuffles and
// votes. Everything is exact and slow. What no kernel here uses is not here: clusters, textures, cooperative groups, PTX.
#pragma once

#include "words.hpp"

#include "fibers.hpp"

#include "block.hpp"

#include "numbers.hpp"

#include "device.hpp"

#include "runtime.hpp"

#include "stable_abi.hpp"
