//! The device tier on a real device; without one every test says so in one line and passes.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test stops at what it did not expect, and says what it skipped"
)]

use std::time::{Duration, Instant};

use ksmith_box::Level;
use ksmith_task::DType;
use ksmith_worker::cuda::{
    self, Buffer, BufferAccess, BufferEdge, Cache, Checks, CompileOptions, CudaError, CudaFault, Launch,
    Owner, Param, RealRule, ResolvedPlan, ResolvedStep, Timing, WholeRule, Worker, WorkerOptions,
};

ksmith_box::intercept_tests!(ksmith_worker::intercept);

const SOURCE: &str = r#"
extern "C" __global__ void twice(const float *x, float *y, long long n)
{
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}
extern "C" __global__ void writes_input(const float *x, float *y, long long n)
{
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) { y[i] = 2.0f * x[i]; ((float *)x)[i] = 0.0f; }
}
extern "C" __global__ void past_the_end(const float *x, float *y, long long n)
{
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) y[i + (1 << 20)] = x[i];
}
extern "C" __global__ void never_ends(const float *x, float *y, long long n)
{
    volatile float v = x[0];
    while (v == v) v += 1.0f;
    y[0] = v;
}
"#;

const N: usize = 1 << 22;

fn device() -> Option<Owner> {
    match Owner::open(0) {
        Ok(owner) => Some(owner),
        Err(error) => {
            println!("skipped: 1 device test ({error})");
            None
        }
    }
}

fn options() -> WorkerOptions {
    WorkerOptions {
        ordinal: 0,
        least: Level::Limits,
        unsandboxed: std::env::var_os("KSMITH_TEST_UNSANDBOXED").is_some(),
    }
}

fn plan(kernel: &str) -> ResolvedPlan {
    let launch = Launch {
        kernel: 0,
        grid: [(N as u32).div_ceil(256), 1, 1],
        block: [256, 1, 1],
        cluster: None,
        shared: 0,
        cooperative: false,
        pdl: false,
    };
    let params = vec![
        Param::Buffer(0),
        Param::Buffer(1),
        Param::Bytes((N as i64).to_le_bytes().to_vec()),
    ];
    ResolvedPlan {
        kernels: vec![kernel.to_owned()],
        workspaces: Vec::new(),
        setup: Vec::new(),
        steps: vec![ResolvedStep::Launch { launch, params }],
    }
}

fn compiler(owner: &Owner) -> CompileOptions {
    let (major, minor) = owner.facts().capability;
    let suffix = if major == 9 { "a" } else { "" };
    CompileOptions {
        sources: vec![("kernel.cu".to_owned(), SOURCE.to_owned())],
        kernels: Vec::new(),
        arch: format!("sm_{major}{minor}{suffix}"),
        flags: Vec::new(),
        include: Vec::new(),
        library: nvrtc(),
    }
}

fn start(owner: &Owner, kernel: &str, slots: &[Vec<&Buffer>]) -> Worker {
    let options = CompileOptions {
        kernels: vec![kernel.to_owned()],
        ..compiler(owner)
    };
    let cubin = cuda::compile(&options, self::options().least, self::options().unsandboxed).unwrap();
    println!("compiled `{kernel}` in {:.0} ms", cubin.ms);
    let began = Instant::now();
    let mut worker = Worker::start(&self::options()).unwrap();
    println!(
        "worker at level `{}` after {:.0} ms",
        worker.level(),
        began.elapsed().as_secs_f64() * 1e3
    );
    let facts = worker.load(&cubin, &[kernel.to_owned()]).unwrap();
    assert_eq!(facts[0].params, [8, 8, 8]);
    worker.flush_with(owner).unwrap();
    for (slot, buffers) in slots.iter().enumerate() {
        worker.slot(slot, buffers, &plan(kernel)).unwrap();
    }
    worker
}

fn call(worker: &mut Worker, owner: &Owner) -> Result<Timing, CudaError> {
    worker.call(owner, 0, Cache::AsIs, Duration::from_secs(5))
}

fn buffers(owner: &Owner) -> (Buffer, Buffer) {
    let x = owner.buffer(4 * N, 256, BufferAccess::Input).unwrap();
    let y = owner.buffer(4 * N, 256, BufferAccess::Output).unwrap();
    let values: Vec<u8> = (0..N).flat_map(|i| (i as f32).to_le_bytes()).collect();
    owner.write(&x, &values).unwrap();
    owner.poison(&y, 0xff).unwrap();
    (x, y)
}

#[test]
fn an_honest_kernel_is_right_and_both_clocks_agree() {
    let Some(owner) = device() else { return };
    let (x, y) = buffers(&owner);
    let mut worker = start(&owner, "twice", &[vec![&x, &y]]);
    let mut cold: Vec<Timing> = Vec::new();
    for _ in 0..30 {
        owner.poison(&y, 0xff).unwrap();
        cold.push(
            worker
                .call(&owner, 0, Cache::Cold, Duration::from_secs(5))
                .unwrap(),
        );
        let mut out = vec![0; 4 * N];
        owner.read(&y, &mut out).unwrap();
        let right = out
            .chunks_exact(4)
            .enumerate()
            .all(|(i, b)| f32::from_le_bytes([b[0], b[1], b[2], b[3]]) == 2.0 * i as f32);
        assert!(right);
    }
    let checks = Checks::load(&owner, &compiler(&owner), options().least, options().unsandboxed).unwrap();
    assert_eq!(checks.slack_intact(&owner, &y, 0xff).unwrap(), [true; 2]);
    let median = |mut values: Vec<u64>| {
        values.sort_unstable();
        values[values.len() / 2]
    };
    let event = median(cold.iter().map(|timing| timing.event_ns).collect());
    let judge = median(cold.iter().map(|timing| timing.judge_ns).collect());
    let batch = worker
        .batch(&owner, &[0; 64], false, Duration::from_secs(5))
        .unwrap();
    let graph = worker
        .batch(&owner, &[0; 64], true, Duration::from_secs(5))
        .unwrap();
    let roofs = checks.roofs(&owner, 8 * N, 20).unwrap();
    println!(
        "event {event} ns, judge {judge} ns, batch {} / {} ns, graph {} ns, copy {} ns, write {} ns, read {} ns",
        batch.event_ns / 64,
        batch.judge_ns / 64,
        graph.event_ns / 64,
        median(roofs.copy),
        median(roofs.write),
        median(roofs.read)
    );
    assert!(judge > event);
    // 64 serial calls on the judge's own clock bound the claim from above.
    assert!(batch.judge_ns >= batch.event_ns);
}

#[test]
fn a_write_to_an_input_faults_in_the_worker_and_the_judge_goes_on() {
    let Some(owner) = device() else { return };
    let (x, y) = buffers(&owner);
    let mut worker = start(&owner, "writes_input", &[vec![&x, &y]]);
    let error = call(&mut worker, &owner).unwrap_err();
    println!("{error}");
    assert!(
        matches!(
            &error,
            CudaError::Fault(CudaFault::Device { code: 700 | 717, .. })
        ),
        "{error}"
    );
    let mut back = vec![0; 4 * N];
    owner.read(&x, &mut back).unwrap();
    assert_eq!(&back[4 * 77..4 * 78], 77f32.to_le_bytes());
    assert!(matches!(call(&mut worker, &owner), Err(CudaError::Dead)));
}

#[test]
fn an_access_past_the_mapping_faults_and_a_new_worker_starts() {
    let Some(owner) = device() else { return };
    let (x, y) = buffers(&owner);
    let mut worker = start(&owner, "past_the_end", &[vec![&x, &y]]);
    let error = call(&mut worker, &owner).unwrap_err();
    println!("{error}");
    assert!(
        matches!(&error, CudaError::Fault(CudaFault::Device { code: 700, .. })),
        "{error}"
    );
    drop(worker);
    let mut worker = start(&owner, "twice", &[vec![&x, &y]]);
    call(&mut worker, &owner).unwrap();
}

#[test]
fn a_kernel_that_never_ends_is_ended_and_the_judge_goes_on() {
    let Some(owner) = device() else { return };
    let (x, y) = buffers(&owner);
    let mut worker = start(&owner, "never_ends", &[vec![&x, &y]]);
    let error = worker
        .call(&owner, 0, Cache::AsIs, Duration::from_secs(2))
        .unwrap_err();
    assert!(matches!(&error, CudaError::Fault(CudaFault::Timeout)), "{error}");
    drop(worker);
    let mut worker = start(&owner, "twice", &[vec![&x, &y]]);
    worker
        .call(&owner, 0, Cache::AsIs, Duration::from_secs(10))
        .unwrap();
}

#[test]
fn comparisons_on_the_device_find_what_is_wrong_and_where_memory_was_touched() {
    let Some(owner) = device() else { return };
    let checks = Checks::load(&owner, &compiler(&owner), options().least, options().unsandboxed).unwrap();
    let count = 10_001;
    let want: Vec<f64> = (0..count).map(|i| f64::from(i as u32) - 5000.0).collect();
    let rule = RealRule {
        dtype: DType::F32,
        atol: 1e-6,
        rtol: 1e-6,
        ctol: 0.0,
        edge: f64::from(f32::MAX),
        limit: f64::INFINITY,
    };
    let compare = |got: &[f32]| {
        let bytes: Vec<u8> = got.iter().flat_map(|value| value.to_le_bytes()).collect();
        let output = owner
            .buffer_at(bytes.len(), 256, BufferAccess::Output, BufferEdge::Start)
            .unwrap();
        owner.write(&output, &bytes).unwrap();
        let expected = owner.buffer(8 * count, 256, BufferAccess::Input).unwrap();
        owner.write_reals(&expected, &want).unwrap();
        checks
            .real(&owner, &rule, &output, &expected, None, count)
            .unwrap()
            .unwrap()
    };
    let right: Vec<f32> = want.iter().map(|value| *value as f32).collect();
    let compared = compare(&right);
    assert_eq!(
        (compared.values, compared.non_finite, compared.ratio),
        (0, 0, 0.0)
    );
    let mut wrong = right.clone();
    wrong[count - 1] += 1.0;
    wrong[7] = f32::NAN;
    wrong[8] = f32::INFINITY;
    let compared = compare(&wrong);
    assert_eq!((compared.values, compared.non_finite), (1, 2));
    assert!(compared.ratio > 100.0);

    let output = owner.buffer(4 * count, 256, BufferAccess::Output).unwrap();
    let expected = owner.buffer(8 * count, 256, BufferAccess::Input).unwrap();
    let wholes: Vec<i64> = (0..count as i64).map(|i| 3 * i - 9).collect();
    let bytes: Vec<u8> = wholes
        .iter()
        .flat_map(|value| (*value as i32).to_le_bytes())
        .collect();
    owner.write(&output, &bytes).unwrap();
    owner.write_wholes(&expected, &wholes).unwrap();
    let exact = |rule| {
        checks
            .whole(&owner, DType::I32, rule, &output, &expected, count)
            .unwrap()
            .unwrap()
            .values
    };
    assert_eq!(exact(WholeRule::Exact), 0);
    owner.write(&output, &[1, 0, 0, 0]).unwrap();
    assert_eq!(exact(WholeRule::Exact), 1);
    let halves: Vec<f64> = wholes.iter().map(|value| *value as f64 + 0.5).collect();
    owner.write_reals(&expected, &halves).unwrap();
    let within = |slack| WholeRule::Within {
        slack,
        least: -2e9,
        most: 2e9,
    };
    assert_eq!(exact(within(0.5)), 1);
    assert_eq!(exact(within(0.4)), count as u64);

    owner.poison(&output, 0x7f).unwrap();
    assert_eq!(checks.slack_intact(&owner, &output, 0x7f).unwrap(), [true; 2]);
    assert!(!checks.slack_intact(&owner, &output, 0xff).unwrap()[0]);
}

/// NVRTC of a private toolchain, or what the loader finds.
fn nvrtc() -> Option<std::path::PathBuf> {
    std::env::var_os("KSMITH_TEST_NVRTC").map(Into::into)
}

#[test]
fn the_compiler_answers_from_its_box() {
    let build = |source: &str| {
        cuda::compile(
            &CompileOptions {
                sources: vec![("kernel.cu".to_owned(), source.to_owned())],
                kernels: vec!["twice".to_owned()],
                arch: "sm_90a".to_owned(),
                flags: Vec::new(),
                include: Vec::new(),
                library: nvrtc(),
            },
            options().least,
            options().unsandboxed,
        )
    };
    match build(SOURCE) {
        Ok(cubin) => {
            assert_eq!(cubin.lowered["twice"], "twice");
            assert_eq!(&cubin.image[1..4], b"ELF");
            println!("compiled in {:.0} ms", cubin.ms);
        }
        Err(CudaError::Unavailable(why)) => {
            println!("skipped: 1 compiler test ({why})");
            return;
        }
        Err(error) => panic!("{error}"),
    }
    let error = build("extern \"C\" __global__ void twice() { oops }").unwrap_err();
    assert!(
        matches!(&error, CudaError::Fault(CudaFault::Load { message }) if message.contains("oops")),
        "{error}"
    );
    let error = build("#include \"/etc/passwd\"\nextern \"C\" __global__ void twice() {}").unwrap_err();
    assert!(
        matches!(&error, CudaError::Fault(CudaFault::Load { .. })),
        "{error}"
    );
}
