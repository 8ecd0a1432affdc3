// sppark's transforms, quotient, sums and field arithmetic on memory that the caller has put on the device.
//
// Every function returns a CUDA error code. Times are in milliseconds between events on sppark's own stream;
// sums end on the host and are timed by the caller.

#include <ff/bls12-381-fp2.hpp>
#include <ec/jacobian_t.hpp>
#include <ec/xyzz_t.hpp>

typedef jacobian_t<fp_t> point_t;
typedef xyzz_t<fp_t> bucket_t;
typedef bucket_t::affine_t affine_t;
typedef jacobian_t<fp2_t> point_fp2_t;
typedef xyzz_t<fp2_t> bucket_fp2_t;
typedef bucket_fp2_t::affine_t affine_fp2_t;
typedef fr_t scalar_t;

#define SPPARK_DONT_INSTANTIATE_TEMPLATES
#include <msm/pippenger.cuh>
#include <ntt/ntt.cuh>

// The host names kernels by its own types: the device's have to be instantiated one by one.
template __global__ void accumulate<bucket_t, affine_t::mem_t>(
    bucket_t::mem_t[], uint32_t, uint32_t, affine_t::mem_t[], const vec2d_t<uint32_t>,
    const vec2d_t<uint32_t>, uint32_t);
template __global__ void batch_addition<bucket_t>(
    bucket_t::mem_t[], const affine_t::mem_t[], size_t, const uint32_t[], const uint32_t&);
template __global__ void integrate<bucket_t>(bucket_t::mem_t[], uint32_t, uint32_t, uint32_t);
template __global__ void accumulate<bucket_fp2_t, affine_fp2_t::mem_t>(
    bucket_fp2_t::mem_t[], uint32_t, uint32_t, affine_fp2_t::mem_t[], const vec2d_t<uint32_t>,
    const vec2d_t<uint32_t>, uint32_t);
template __global__ void batch_addition<bucket_fp2_t>(
    bucket_fp2_t::mem_t[], const affine_fp2_t::mem_t[], size_t, const uint32_t[], const uint32_t&);
template __global__ void integrate<bucket_fp2_t>(bucket_fp2_t::mem_t[], uint32_t, uint32_t, uint32_t);
template __global__ void breakdown<scalar_t>(
    vec2d_t<uint32_t>, const scalar_t[], size_t, uint32_t, uint32_t, bool);

// a[i] *= b[i] for i < n.
__launch_bounds__(1024) __global__ void peer_multiply(fr_t* a, const fr_t* b, size_t n)
{
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < n; i += blockDim.x * gridDim.x)
        a[i] *= b[i];
}

// a[i] = (a[i] - c[i]) * z[0] for i < n.
__launch_bounds__(1024) __global__ void peer_subtract(fr_t* a, const fr_t* c, const fr_t* z, size_t n)
{
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < n; i += blockDim.x * gridDim.x) {
        fr_t difference = a[i] - c[i];
        a[i] = difference * z[0];
    }
}

// Chains of dependent operations: a <- a*b, or a <- a^2.
__launch_bounds__(128) __global__ void peer_fr_mul(fr_t* out, const fr_t* x, uint32_t iterations)
{
    uint32_t i = threadIdx.x + blockIdx.x * blockDim.x;
    fr_t b = x[i % 1024], a = x[(i + 1) % 1024];
    for (uint32_t k = 0; k < iterations; k++)
        a = a * b;
    out[i] = a;
}

__launch_bounds__(128) __global__ void peer_fp_mul(fp_t* out, const fp_t* x, uint32_t iterations)
{
    uint32_t i = threadIdx.x + blockIdx.x * blockDim.x;
    fp_t b = x[i % 1024], a = x[(i + 1) % 1024];
    for (uint32_t k = 0; k < iterations; k++)
        a = a * b;
    out[i] = a;
}

__launch_bounds__(128) __global__ void peer_fp_sqr(fp_t* out, const fp_t* x, uint32_t iterations)
{
    uint32_t i = threadIdx.x + blockIdx.x * blockDim.x;
    fp_t a = x[i % 1024];
    for (uint32_t k = 0; k < iterations; k++)
        a = a ^ 2;
    out[i] = a;
}

#ifndef __CUDA_ARCH__

namespace {

struct Timer {
    cudaStream_t stream;
    cudaEvent_t from, to;
    Timer(cudaStream_t s) : stream(s)
    {
        CUDA_OK(cudaEventCreate(&from));
        CUDA_OK(cudaEventCreate(&to));
    }
    ~Timer()
    {
        (void)cudaEventDestroy(from);
        (void)cudaEventDestroy(to);
    }
    template<typename Work> float time(Work work)
    {
        float ms = 0;
        CUDA_OK(cudaEventRecord(from, stream));
        work();
        CUDA_OK(cudaEventRecord(to, stream));
        CUDA_OK(cudaEventSynchronize(to));
        CUDA_OK(cudaEventElapsedTime(&ms, from, to));
        return ms;
    }
};

template<typename Work> int guarded(Work work)
{
    try {
        work();
        return 0;
    } catch (const cuda_error& e) {
        return e.code() ? e.code() : -1;
    }
}

void transform(stream_t& stream, fr_t* data, uint32_t log2, int order, bool inverse, bool coset)
{
    NTT::Base_dev_ptr(stream, data, log2, (NTT::InputOutputOrder)order,
                      inverse ? NTT::Direction::inverse : NTT::Direction::forward,
                      coset ? NTT::Type::coset : NTT::Type::standard);
}

void quotient(stream_t& stream, fr_t* a, fr_t* b, fr_t* c, const fr_t* z, uint32_t log2)
{
    size_t n = (size_t)1 << log2;
    for (fr_t* values : {a, b, c}) {
        transform(stream, values, log2, 1, true, false);
        transform(stream, values, log2, 2, false, true);
    }
    peer_multiply<<<stream.sm_count(), 1024, 0, stream>>>(a, b, n);
    peer_subtract<<<stream.sm_count(), 1024, 0, stream>>>(a, c, z, n);
    CUDA_OK(cudaGetLastError());
    transform(stream, a, log2, 0, true, true);
}

template<class bucket, class point, class affine>
int sum(void* out, const void* points, size_t n, const void* scalars, uint32_t width)
{
    return guarded([&] {
        // The width follows from the length that the constructor is told: lg2(1.5 n) - 8.
        size_t told = ((size_t)1 << (width + 8)) / 3 * 2 + 2;
        msm_t<bucket, point, affine, scalar_t> msm{nullptr, told};
        dev_ptr_t<affine> bases{(affine*)points, n};
        dev_ptr_t<scalar_t> factors{(scalar_t*)scalars, n};
        RustError error = msm.invoke(*(point*)out, bases, n, factors, true);
        if (error.code)
            throw cuda_error{error.code, "sum"};
    });
}

} // namespace

extern "C" {

// order: 0 natural to natural, 1 natural to reversed, 2 reversed to natural.
int peer_transform(void* data, uint32_t log2, int order, int inverse, int coset, uint32_t count, float* ms)
{
    return guarded([&] {
        stream_t& stream = select_gpu(0);
        Timer timer{stream};
        for (uint32_t i = 0; i < count; i++)
            ms[i] = timer.time([&] { transform(stream, (fr_t*)data, log2, order, inverse, coset); });
    });
}

// The coefficients end in a.
int peer_quotient(void* a, void* b, void* c, const void* z, uint32_t log2, float* ms)
{
    return guarded([&] {
        stream_t& stream = select_gpu(0);
        Timer timer{stream};
        *ms = timer.time([&] { quotient(stream, (fr_t*)a, (fr_t*)b, (fr_t*)c, (const fr_t*)z, log2); });
    });
}

// A Jacobian point in Montgomery form.
int peer_sum_g1(void* out, const void* points, size_t n, const void* scalars, uint32_t width)
{   return sum<bucket_t, point_t, affine_t>(out, points, n, scalars, width);   }

int peer_sum_g2(void* out, const void* points, size_t n, const void* scalars, uint32_t width)
{   return sum<bucket_fp2_t, point_fp2_t, affine_fp2_t>(out, points, n, scalars, width);   }

// operation: 0 Fr product, 1 Fp product, 2 Fp square. 128 threads a block.
int peer_field(int operation, void* out, const void* x, uint32_t blocks, uint32_t iterations, float* ms)
{
    return guarded([&] {
        stream_t& stream = select_gpu(0);
        Timer timer{stream};
        *ms = timer.time([&] {
            if (operation == 0)
                peer_fr_mul<<<blocks, 128, 0, stream>>>((fr_t*)out, (const fr_t*)x, iterations);
            else if (operation == 1)
                peer_fp_mul<<<blocks, 128, 0, stream>>>((fp_t*)out, (const fp_t*)x, iterations);
            else
                peer_fp_sqr<<<blocks, 128, 0, stream>>>((fp_t*)out, (const fp_t*)x, iterations);
            CUDA_OK(cudaGetLastError());
        });
    });
}

} // extern "C"

#endif
