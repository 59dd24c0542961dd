use super::*;

fn candidate(source: &str) -> (tempfile::TempDir, Sources, BuildOptions) {
    let folder = tempfile::tempdir().unwrap();
    let code = folder.path().join("candidate");
    fs::create_dir(&code).unwrap();
    fs::write(code.join("kernel.c"), source).unwrap();
    let sources = Sources {
        folder: code,
        files: vec!["kernel.c".to_owned()],
        entry: "kernel".to_owned(),
        flags: vec!["-O2".to_owned()],
    };
    let options = BuildOptions::new(&folder.path().join("cache"));
    (folder, sources, options)
}

fn refused(source: &str) -> Refused {
    let (_folder, sources, options) = candidate(source);
    match compile(&sources, &options).unwrap() {
        Build::Refused(refused) => refused,
        Build::Library(library) => panic!("built: {library:?}"),
    }
}

#[test]
fn the_same_sources_give_the_same_library_from_cache_or_not() {
    let (_folder, sources, options) =
        candidate("#include <math.h>\nvoid kernel(float *x) { *x = expf(*x); }\n");
    let build = |options: &BuildOptions| match compile(&sources, options).unwrap() {
        Build::Library(library) => library,
        Build::Refused(refused) => panic!("{refused:?}"),
    };
    let first = build(&options);
    assert!(!first.cached && first.path.exists());
    println!("compile: {} ms", first.ms);
    let second = build(&options);
    assert_eq!(
        second,
        Library {
            cached: true,
            ..first.clone()
        }
    );
    let elsewhere = build(&BuildOptions::new(&options.cache.join("other")));
    assert!(!elsewhere.cached);
    assert_eq!(elsewhere.digest, first.digest);
    fs::write(sources.folder.join("header.h"), "").unwrap();
    assert!(!build(&options).cached, "a new header may change the build");
    let left: Vec<_> = fs::read_dir(&options.cache)
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert!(
        left.iter().all(|name| !name.to_string_lossy().starts_with('.')),
        "{left:?}"
    );
}

#[test]
fn a_syntax_error_is_refused_with_the_compilers_words() {
    let refused = refused("void kernel( {\n");
    assert_eq!(refused.code, "compile/error");
    assert!(refused.stderr.contains("kernel.c:1"), "{}", refused.stderr);
}

#[test]
fn files_outside_cannot_be_included_or_embedded() {
    let (folder, sources, options) = candidate("");
    let secret = folder.path().join("secret.h");
    fs::write(&secret, "#define SECRET 42\n").unwrap();
    for source in [
        format!(
            "#include \"{}\"\nint kernel(void) {{ return SECRET; }}\n",
            secret.display()
        ),
        "#include \"../secret.h\"\nint kernel(void) { return SECRET; }\n".to_owned(),
        "#include \"../../../secret.h\"\nint kernel(void) { return SECRET; }\n".to_owned(),
        format!(
            "__asm__(\".incbin \\\"{}\\\"\");\nint kernel(void) {{ return 0; }}\n",
            secret.display()
        ),
        "__asm__(\".incbin \\\"/etc/passwd\\\"\");\nint kernel(void) { return 0; }\n".to_owned(),
    ] {
        fs::write(sources.folder.join("kernel.c"), &source).unwrap();
        let build = compile(&sources, &options).unwrap();
        assert!(
            matches!(&build, Build::Refused(r) if r.code == "compile/error"),
            "{source}: {build:?}"
        );
    }
}

#[test]
fn a_link_to_a_file_outside_is_not_followed() {
    let (folder, sources, options) = candidate("#include \"link.h\"\nint kernel(void) { return SECRET; }\n");
    fs::write(folder.path().join("secret.h"), "#define SECRET 42\n").unwrap();
    std::os::unix::fs::symlink(folder.path().join("secret.h"), sources.folder.join("link.h")).unwrap();
    assert!(matches!(compile(&sources, &options).unwrap(), Build::Refused(_)));
}

#[test]
fn a_compile_time_bomb_is_stopped() {
    let (_folder, sources, mut options) = candidate("#include \"kernel.c\"\n#include \"kernel.c\"\n");
    options.wall = Duration::from_secs(2);
    options.memory_bytes = 512 << 20;
    let started = Instant::now();
    assert!(matches!(compile(&sources, &options).unwrap(), Build::Refused(_)));
    fs::write(
        sources.folder.join("kernel.c"),
        "#define A(x) x,x,x,x,x,x,x,x,x,x\n#define B(x) A(A(A(A(x))))\nint kernel[] = { B(B(1)) };\n",
    )
    .unwrap();
    assert!(matches!(compile(&sources, &options).unwrap(), Build::Refused(_)));
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn cplusplus_is_compiled_too() {
    let (_folder, mut sources, options) = candidate("");
    fs::write(
        sources.folder.join("kernel.cpp"),
        "#include <cmath>\nextern \"C\" void kernel(float *x) { *x = std::exp(*x); }\n",
    )
    .unwrap();
    sources.files = vec!["kernel.cpp".to_owned()];
    assert!(matches!(compile(&sources, &options).unwrap(), Build::Library(_)));
}

#[test]
fn a_build_asks_neither_for_the_day_nor_for_files() {
    let built = |text: &str| {
        let (_folder, sources, options) = candidate(text);
        match compile(&sources, &options).unwrap() {
            Build::Library(_) => String::new(),
            Build::Refused(refused) => format!("{}: {}", refused.code, refused.stderr),
        }
    };
    let dated = built("void kernel(float *x) { *x = __DATE__[4]; }\n");
    assert!(
        dated.contains("__DATE__") && dated.contains("reproducible"),
        "{dated}"
    );
    let pasted =
        "#define CAT(a, b) a##b\n#if CAT(__has_, include)(</usr/include/math.h>)\n#error seen\n#endif\n";
    let asked = built(&format!("{pasted}void kernel(float *x) {{ *x = 1; }}\n"));
    assert!(
        !asked.contains("seen") && asked.contains("missing binary operator"),
        "{asked}"
    );
    assert_eq!(
        built("#include <math.h>\nvoid kernel(float *x) { *x = expf(*x); }\n"),
        ""
    );
}

#[test]
fn a_sanitizer_compiles_the_program_that_runs() {
    let (_folder, sources, mut options) = candidate(
        "#ifdef __SANITIZE_ADDRESS__\n#error told apart\n#endif\n\
         __attribute__((no_sanitize(\"address\"))) void kernel(float *x) { x[1000] = 1; }\n",
    );
    options.sanitizer = Some(Sanitizer::Address);
    let Build::Library(library) = compile(&sources, &options).unwrap() else {
        panic!("refused");
    };
    let bytes = fs::read(&library.path).unwrap();
    let checks = b"__asan_report_store4";
    assert!(
        bytes.windows(checks.len()).any(|window| window == checks),
        "the attribute took the check out"
    );
}

#[test]
fn a_library_without_its_entry_is_refused_by_name_from_the_cache_too() {
    let (_folder, mut sources, options) = candidate("void colonel(float *x) { *x = 1; }\n");
    let refused = |sources: &Sources| match compile(sources, &options).unwrap() {
        Build::Refused(refused) => (refused.code, refused.stderr),
        Build::Library(library) => panic!("built: {library:?}"),
    };
    let (code, text) = refused(&sources);
    assert_eq!(code, "compile/no-entry");
    assert!(
        text.contains("does not export `kernel`; it exports colonel"),
        "{text}"
    );
    sources.entry = "colonel".to_owned();
    assert!(matches!(compile(&sources, &options).unwrap(), Build::Library(_)));
    sources.entry = "kernel".to_owned();
    assert_eq!(refused(&sources).0, "compile/no-entry");
    fs::write(
        sources.folder.join("kernel.cpp"),
        "void kernel(float *x) { *x = 1; }\n",
    )
    .unwrap();
    sources.files = vec!["kernel.cpp".to_owned()];
    let (_, text) = refused(&sources);
    assert!(text.contains("declare it `extern \"C\"`"), "{text}");
}
