//! The layouts and constants, against those that a C compiler finds in the header.

use super::constants::CONSTANTS;
use super::queues::QUEUES;
use super::{DEVICES, Structure, ibv_gid, ibv_send_wr, remote, remote_access, remote_atomic};
use std::fmt::Write as _;
use std::mem::offset_of;
use std::process::Command;

/// Parts of unions, which the list of structures does not reach: the path in C, the offset and the size here.
const PARTS: &[(&str, usize, usize)] = &[
    ("wr.rdma.remote_addr", wr(offset_of!(remote_access, remote_addr)), 8),
    ("wr.rdma.rkey", wr(offset_of!(remote_access, rkey)), 4),
    ("wr.atomic.remote_addr", wr(offset_of!(remote_atomic, remote_addr)), 8),
    ("wr.atomic.compare_add", wr(offset_of!(remote_atomic, compare_add)), 8),
    ("wr.atomic.swap", wr(offset_of!(remote_atomic, swap)), 8),
    ("wr.atomic.rkey", wr(offset_of!(remote_atomic, rkey)), 4),
    ("wr", wr(0), size_of::<remote>()),
    ("invalidate_rkey", offset_of!(ibv_send_wr, imm_data), 4),
];

const fn wr(offset: usize) -> usize {
    offset_of!(ibv_send_wr, wr) + offset
}

#[test]
fn layouts_and_constants_are_those_of_the_header() {
    let (mut program, mut expected) = (String::from(PROLOGUE), String::new());
    for structure in DEVICES.iter().chain(QUEUES) {
        fields(structure, &mut program, &mut expected);
    }
    for (path, offset, size) in PARTS {
        member(&mut program, "ibv_send_wr", path);
        writeln!(expected, "ibv_send_wr.{path} {offset} {size}").expect("writes to a string");
    }
    writeln!(program, "printf(\"gid %zu %zu\\n\", sizeof(union ibv_gid), _Alignof(union ibv_gid));").expect("a string");
    writeln!(expected, "gid {} {}", size_of::<ibv_gid>(), align_of::<ibv_gid>()).expect("a string");
    for (name, value) in CONSTANTS {
        writeln!(program, "printf(\"{name} %u\\n\", (unsigned) {name});").expect("a string");
        writeln!(expected, "{name} {value}").expect("a string");
    }
    program.push_str("return 0;\n}\n");
    let found = run(&program);
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected, "the header has the left one");
    }
    assert_eq!(found.lines().count(), expected.lines().count());
}

const PROLOGUE: &str = "#include <stddef.h>\n#include <stdio.h>\n#include <infiniband/verbs.h>\nint main(void) {\n";

/// Adds the fields of a structure, and the size of a whole one, to the program and to what is expected of it.
fn fields(structure: &Structure, program: &mut String, expected: &mut String) {
    let Structure { name, is_whole, size, fields } = structure;
    for (field, offset, size) in fields.iter().filter(|(field, ..)| !field.starts_with("unused_")) {
        member(program, name, field);
        writeln!(expected, "{name}.{field} {offset} {size}").expect("a string");
    }
    if *is_whole {
        writeln!(program, "printf(\"{name} %zu\\n\", sizeof(struct {name}));").expect("a string");
        writeln!(expected, "{name} {size}").expect("a string");
    }
}

fn member(program: &mut String, structure: &str, path: &str) {
    writeln!(
        program,
        "printf(\"{structure}.{path} %zu %zu\\n\", offsetof(struct {structure}, {path}), \
         sizeof(((struct {structure} *) 0)->{path}));"
    )
    .expect("a string");
}

/// Compiles a C program and returns its output.
fn run(program: &str) -> String {
    let folder = std::env::temp_dir().join(format!("hodo-verbs-layout-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the folder of temporary files can be written");
    let (source, binary) = (folder.join("layout.c"), folder.join("layout"));
    std::fs::write(&source, program).expect("the program can be written");
    let compiled = Command::new("cc").arg("-o").args([&binary, &source]).output().expect("a C compiler is installed");
    let complaint = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "is libibverbs-dev installed? {complaint}");
    let output = Command::new(&binary).output().expect("the program runs");
    std::fs::remove_dir_all(&folder).expect("the folder can be removed");
    String::from_utf8(output.stdout).expect("the program prints text")
}
