//! Verifies the calls after the first one, because these are the calls that are timed.
//!
//! IREE's benchmark tool passes the same buffers to every call, and a function may write to them. A function
//! that is correct in its first call and does nothing in all others would look fast. Therefore a small module
//! that benchgate generates calls the function twice in one process, and the results of the second call are
//! verified. If the inputs are the same after two calls as after one, every later call starts in the same
//! state as the second one, so its result is valid for all. If the first call changes the inputs, the timed
//! calls don't do the given work, which is accepted only if both sides behave like this.
//!
//! A program that remembers its result elsewhere is correct in every call with the same inputs. So a third
//! call gets other inputs ([`made`]), and must return the same as a first call with these inputs, and as base's
//! program does ([`super::verify::compare_sides`]). Values that a program keeps in globals are also found by
//! searching its source ([`super::code::storing_operation`]).
//!
//! The other inputs have the same types and shapes as the given ones, and values that a function should also
//! accept: numbers are in reverse order, and floating-point numbers are halved; zeros become 0.5 in every second
//! element. Integers may be indices, so they keep their values, and their order too if there are floating-point
//! numbers. Only if nothing else changes an input, every second integer moves by one.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use benchgate_core::numerics::{DType, TensorFile};
use benchgate_host::process::{Command, Exit};
use benchgate_toolchain::Installed;

use super::PipelineError;
use super::argv::{Execution, InputArg};
use super::compile::failure;
use super::host::Host;
use super::plan::PlannedBenchmark;
use super::slots::Priority;
use super::stage::Caller;

/// The name of the generated module. If a model's module has the same name, which could only be intended,
/// loading both fails.
const MODULE: &str = "benchgate_calls";
/// Name of the function that returns the inputs as they were given.
const GIVEN: &str = "given";
/// Name of the function that calls once and returns the inputs.
const ONCE: &str = "once";
/// Name of the function that calls twice and returns the second call's results, then the inputs.
const TWICE: &str = "twice";
/// Name of the function that calls once with the second half of the inputs and returns the results.
const ALONE: &str = "alone";
/// Name of the function that calls twice with the first half of the inputs, then once with the second half.
/// The results are those of [`TWICE`], then those of the third call.
const THRICE: &str = "thrice";
/// The type that `iree-dump-module` prints for all values that are not numbers.
const REFERENCE: &str = "!vm.ref<?>";

/// The reason why a function can't be called twice in one process.
#[derive(Debug)]
pub(super) enum NoCaller {
    /// The module has no such function, so it can't be called at all.
    NoFunction(String),
    /// The function may be correct, but its second call can't be checked.
    Unchecked(String),
}

/// Parameters and results of a function, as types of the virtual machine.
#[derive(Debug, PartialEq, Eq)]
struct Signature {
    /// The function's name, qualified with its module: `module.main`.
    name: String,
    parameters: Vec<&'static str>,
    results: Vec<&'static str>,
}

impl Signature {
    /// Parses a function's signature from the output of `iree-dump-module`.
    fn of(function: &str, dump: &str) -> Result<Self, NoCaller> {
        let unchecked = |why: &str| NoCaller::Unchecked(why.to_owned());
        let module = dump.lines().find_map(|line| line.strip_prefix("// @")?.split_once(" : version"));
        let (module, _) =
            module.ok_or_else(|| unchecked("`iree-dump-module` does not report the module's name"))?;
        let exported = dump.lines().skip_while(|line| *line != "Exported Functions:").skip(1);
        let declared: Vec<(&str, &str)> = exported
            .take_while(|line| !line.is_empty())
            .filter_map(|line| line.trim_start().strip_prefix('[')?.split_once("] ")?.1.split_once('('))
            .collect();
        let Some((_, types)) = declared.iter().find(|(name, _)| *name == function) else {
            // Functions that the compiler adds have a `$` in their name, or begin with an underscore.
            let own = declared.iter().map(|(name, _)| *name);
            let own: Vec<&str> = own.filter(|name| !name.contains('$') && !name.starts_with('_')).collect();
            let why = match own.as_slice() {
                [] => format!("the module exports no function `{function}`"),
                [only] => format!(
                    "the module exports `{only}`, but no function `{function}`: set `function = \"{only}\"`"
                ),
                _ => format!("the module exports `{}`, but no function `{function}`", own.join("`, `")),
            };
            return Err(NoCaller::NoFunction(why));
        };
        let (parameters, results) =
            types.strip_suffix(')').and_then(|types| types.split_once(") -> (")).ok_or_else(|| {
                unchecked(&format!("`iree-dump-module` does not report the types of `{function}`"))
            })?;
        let name = format!("{module}.{function}");
        if name.chars().any(|letter| letter.is_control() || matches!(letter, '"' | '\\')) {
            return Err(unchecked(&format!("a function `{name}` can't be called by name")));
        }
        let known = |types| known(types).map_err(NoCaller::Unchecked);
        Ok(Self { name, parameters: known(parameters)?, results: known(results)? })
    }

    /// The text of the module that calls the function.
    fn caller(&self) -> String {
        let Self { name, parameters, results } = self;
        let numbered = |(number, parameter): (usize, &&str)| format!("%a{number}: {parameter}");
        let declared = parameters.iter().enumerate().map(numbered).collect::<Vec<_>>().join(", ");
        let arguments: Vec<String> = (0..parameters.len()).map(|number| format!("%a{number}")).collect();
        let buffers = arguments.iter().zip(parameters).filter(|(_, parameter)| is_buffer(parameter));
        let buffers: Vec<(&str, &str)> = buffers.map(|(argument, kind)| (argument.as_str(), *kind)).collect();
        let others: Vec<String> = (0..parameters.len()).map(|number| format!("%b{number}")).collect();
        let call_with = |text: &mut String, result: &str, arguments: &[String]| {
            let bound = match results.len() {
                0 => String::new(),
                count => format!("{result}:{count} = "),
            };
            let arguments = arguments.join(", ");
            let (from, to) = (parameters.join(", "), results.join(", "));
            // An error is ignored, because writing to a String can't fail.
            let _ = writeln!(text, "    {bound}vm.call @\"{name}\"({arguments}) : ({from}) -> ({to})");
        };
        let call = |text: &mut String, result: &str| call_with(text, result, &arguments);
        let returned = |text: &mut String, values: &[(String, &str)]| {
            let names = values.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
            let kinds = values.iter().map(|(_, kind)| *kind).collect::<Vec<_>>().join(", ");
            let colon = if values.is_empty() { "" } else { " : " };
            let _ = writeln!(text, "    vm.return {names}{colon}{kinds}\n  }}");
        };
        let kinds =
            |values: &[(String, &str)]| values.iter().map(|(_, kind)| *kind).collect::<Vec<_>>().join(", ");
        let inputs: Vec<(String, &str)> =
            buffers.iter().map(|(argument, kind)| ((*argument).to_owned(), *kind)).collect();
        let of_call = |call: &str| -> Vec<(String, &str)> {
            results.iter().enumerate().map(|(number, kind)| (format!("%{call}#{number}"), *kind)).collect()
        };
        let all: Vec<(String, &str)> = [of_call("second"), inputs.clone()].concat();
        let with_third: Vec<(String, &str)> = [all.clone(), of_call("third")].concat();
        let both = [declared.clone(), declared.replace("%a", "%b")].join(", ");

        let mut text = format!("vm.module @{MODULE} {{\n");
        let _ = writeln!(
            text,
            "  vm.import private @\"{name}\"({declared}) -> ({})\n  vm.export @{GIVEN}\n  vm.export @{ONCE}\n  vm.export @{TWICE}\n  vm.export @{ALONE}\n  vm.export @{THRICE}",
            results.join(", ")
        );
        let _ = writeln!(text, "  vm.func @{GIVEN}({declared}) -> ({}) {{", kinds(&inputs));
        returned(&mut text, &inputs);
        let _ = writeln!(text, "  vm.func @{ONCE}({declared}) -> ({}) {{", kinds(&inputs));
        call(&mut text, "%first");
        returned(&mut text, &inputs);
        let _ = writeln!(text, "  vm.func @{TWICE}({declared}) -> ({}) {{", kinds(&all));
        call(&mut text, "%first");
        call(&mut text, "%second");
        returned(&mut text, &all);
        // A function without parameters has no other inputs.
        let both = if parameters.is_empty() { String::new() } else { both };
        let _ = writeln!(text, "  vm.func @{ALONE}({both}) -> ({}) {{", kinds(&of_call("third")));
        call_with(&mut text, "%third", &others);
        returned(&mut text, &of_call("third"));
        let _ = writeln!(text, "  vm.func @{THRICE}({both}) -> ({}) {{", kinds(&with_third));
        call(&mut text, "%first");
        call(&mut text, "%second");
        call_with(&mut text, "%third", &others);
        returned(&mut text, &with_third);
        text.push_str("}\n");
        text
    }
}

fn is_buffer(kind: &str) -> bool {
    kind.starts_with("!vm.ref")
}

/// Converts a list of types to the virtual machine's dialect, in which every tensor is a buffer view.
fn known(types: &str) -> Result<Vec<&'static str>, String> {
    const NUMBERS: [&str; 4] = ["i32", "i64", "f32", "f64"];
    let spelled = |kind: &str| match kind {
        REFERENCE => Ok("!vm.ref<!hal.buffer_view>"),
        kind => NUMBERS
            .into_iter()
            .find(|number| *number == kind)
            .ok_or_else(|| format!("a value of type `{kind}` can't be passed on")),
    };
    types.split(", ").filter(|kind| !kind.is_empty()).map(spelled).collect()
}

/// Compiles the module that calls a benchmark's function, or returns the reason why that is not possible.
pub(super) async fn caller(
    host: &Host<'_>,
    planned: PlannedBenchmark<'_>,
    tools: &Installed,
    module: &Path,
) -> Result<Result<Caller, NoCaller>, PipelineError> {
    let timeout = planned.side.config.measure.compile_timeout;
    let dump = {
        let _slot = host.slot(Priority::Now).await?;
        host.run(&Command::new(&tools.iree_dump_module, timeout).arg(module).capture_stdout()).await?
    };
    if dump.exit != Exit::Success {
        let why = format!("`iree-dump-module` failed: {}", dump.stderr_tail.trim());
        return Ok(Err(NoCaller::Unchecked(why)));
    }
    let dump = String::from_utf8_lossy(&dump.stdout);
    let signature = match Signature::of(&planned.model.function, &dump) {
        Ok(signature) => signature,
        Err(why) => return Ok(Err(why)),
    };
    let text = signature.caller();
    let make = async || {
        let folder = host.scratch()?;
        let [source, module] = ["calls.mlir", "calls.vmfb"].map(|name| folder.path().join(name));
        fs::write(&source, &text).map_err(PipelineError::io("write", &source))?;
        let compile = Command::new(&tools.iree_compile, timeout)
            .arg("--compile-mode=vm")
            .arg(&source)
            .arg("-o")
            .arg(&module);
        let _slot = host.slot(Priority::Now).await?;
        let finished = host.run(&compile).await?;
        if finished.exit == Exit::Success && module.is_file() {
            let folder = Some(Arc::new(folder));
            let inputs = signature.parameters.iter().filter(|kind| is_buffer(kind)).count();
            return Ok(Ok(Caller { module, results: signature.results.len(), inputs, _folder: folder }));
        }
        host.fail_on_full_disk(&finished, folder.path())?;
        Ok::<_, PipelineError>(Err(format!("the compiler refused it: {}", finished.stderr_tail.trim())))
    };
    let made: Result<Caller, String> =
        host.callers.get((tools.iree_compile.clone(), text.clone()), make).await?;
    Ok(made.map_err(NoCaller::Unchecked))
}

/// The outcome of checking later calls, for a function whose inputs don't show that it keeps state.
#[derive(Debug, Default)]
pub(super) struct LaterCalls {
    /// Indices of the inputs that the first call changes and later calls leave unchanged.
    pub(super) changed: Vec<u32>,
    /// Results of a first call and of a third call with other inputs, if there are inputs with which a first
    /// call works.
    pub(super) with_others: Option<[Vec<TensorFile>; 2]>,
}

/// Calls the function once in one process; in another, it is called twice and then once with other inputs.
/// The second call's results are written to `results`, and those with other inputs to files of the same
/// types. `start` makes the command for some arguments.
///
/// # Errors
/// A description of how the function keeps state, or of why that could not be checked.
pub(super) async fn check(
    caller: &Caller,
    host: &Host<'_>,
    execution: &Execution,
    results: &[TensorFile],
    folder: &Path,
    start: impl Fn(Vec<OsString>) -> Command,
) -> Result<Result<LaterCalls, String>, PipelineError> {
    let places = |calls: &str| -> Vec<TensorFile> {
        let name = |number| folder.join(format!("{calls}{number}.bin"));
        let bytes = |number| TensorFile { path: name(number), raw: Some("bytes".to_owned()) };
        (0..caller.inputs).map(bytes).collect()
    };
    let [given, once, twice] = [GIVEN, ONCE, TWICE].map(places);
    let renamed = |calls: &str| -> Vec<TensorFile> {
        let name = |(number, file): (usize, &TensorFile)| TensorFile {
            path: folder.join(format!("{calls}{number}.{}", file.ending())),
            raw: file.raw.clone(),
        };
        results.iter().enumerate().map(name).collect()
    };
    let [alone, third] = [ALONE, "third"].map(renamed);
    let others = if caller.inputs > 0 { made(&execution.inputs, folder)? } else { None };
    let both = others.map(|others| Execution {
        inputs: [execution.inputs.as_slice(), &others].concat(),
        ..execution.clone()
    });
    // The function may not accept the other inputs.
    let both = match both {
        Some(both) => {
            let finished = host.run(&start(both.through(&caller.module, ALONE, &alone))).await?;
            Some(both).filter(|_| finished.exit == Exit::Success)
        }
        None => None,
    };
    let second = [results, &twice].concat();
    let mut processes = vec![match &both {
        Some(both) => both.through(&caller.module, THRICE, &[&second[..], &third].concat()),
        None => execution.through(&caller.module, TWICE, &second),
    }];
    if !once.is_empty() {
        processes.push(execution.through(&caller.module, ONCE, &once));
        processes.push(execution.through(&caller.module, GIVEN, &given));
    }
    for arguments in processes {
        let finished = host.run(&start(arguments)).await?;
        if finished.exit != Exit::Success {
            host.fail_on_full_disk(&finished, folder)?;
            let why = failure(&finished, None).why;
            return Ok(Err(format!("a second call in the same process could not be checked: {why}")));
        }
    }
    let mut changed = Vec::new();
    for (number, input) in (0..).zip(once.iter().zip(&twice).zip(&given)) {
        let ((once, twice), given) = input;
        let once = host.digests.sha256(&once.path).await?;
        if once != host.digests.sha256(&twice.path).await? {
            return Ok(Err(format!("each call changes input {number}")));
        }
        if once != host.digests.sha256(&given.path).await? {
            changed.push(number);
        }
    }
    Ok(Ok(LaterCalls { changed, with_others: both.map(|_| [alone, third]) }))
}

/// The change of integers, which may be indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Integers {
    Kept,
    Reversed,
    /// Reversed, or moved by one if that changes nothing.
    Nudged,
}

/// Makes other inputs, and writes their files to `folder`. `None` if no different inputs can be made.
pub(super) fn made(inputs: &[InputArg], folder: &Path) -> Result<Option<Vec<InputArg>>, PipelineError> {
    for integers in [Integers::Kept, Integers::Reversed, Integers::Nudged] {
        let mut others = Vec::new();
        for (number, input) in inputs.iter().enumerate() {
            others.push(other(input, number, integers, folder)?);
        }
        if others != inputs {
            return Ok(Some(others));
        }
    }
    Ok(None)
}

fn other(
    input: &InputArg,
    number: usize,
    integers: Integers,
    folder: &Path,
) -> Result<InputArg, PipelineError> {
    let file = match input {
        InputArg::Literal(text) => return Ok(InputArg::Literal(other_literal(text, integers))),
        InputArg::File(file) => file,
    };
    let mut bytes = fs::read(&file.path).map_err(PipelineError::io("read", &file.path))?;
    let Ok(tensor) = file.read(&bytes) else { return Ok(input.clone()) };
    let dtype = tensor.dtype();
    // In `.npy` files and in raw files, the elements are at the end.
    let length = tensor.len() * dtype.size();
    let Some(at) = bytes.len().checked_sub(length).filter(|_| length > 0) else { return Ok(input.clone()) };
    let before = bytes.clone();
    let elements = &mut bytes[at..];
    if is_float(dtype) || (integers != Integers::Kept && dtype != DType::Bool) {
        elements.reverse();
        elements.chunks_mut(dtype.size()).for_each(<[u8]>::reverse);
    }
    elements.chunks_mut(dtype.size()).for_each(|element| halve(dtype, element));
    if bytes == before && (is_float(dtype) || (integers == Integers::Nudged && dtype != DType::Bool)) {
        bytes[at..].chunks_mut(dtype.size()).step_by(2).for_each(|element| nudge(dtype, element));
    }
    if bytes == before {
        return Ok(input.clone());
    }
    let path = folder.join(format!("other-input{number}.{}", file.ending()));
    fs::write(&path, bytes).map_err(PipelineError::io("write", &path))?;
    Ok(InputArg::File(TensorFile { path, raw: file.raw.clone() }))
}

fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F64 | DType::F32 | DType::F16 | DType::Bf16)
}

/// Number of bits of the mantissa of a floating-point type.
fn mantissa(dtype: DType) -> Option<usize> {
    match dtype {
        DType::F64 => Some(52),
        DType::F32 => Some(23),
        DType::F16 => Some(10),
        DType::Bf16 => Some(7),
        _ => None,
    }
}

/// Replaces the bits of a little-endian number, if `change` returns others.
fn change_bits(element: &mut [u8], change: impl FnOnce(u64) -> Option<u64>) {
    let width = element.len();
    let mut wide = [0; 8];
    wide[..width].copy_from_slice(element);
    if let Some(changed) = change(u64::from_le_bytes(wide)) {
        element.copy_from_slice(&changed.to_le_bytes()[..width]);
    }
}

/// Halves a number by decrementing its exponent, unless it is zero, infinite, NaN or tiny.
fn halve(dtype: DType, element: &mut [u8]) {
    let Some(mantissa) = mantissa(dtype) else { return };
    let exponents = (1_u64 << (8 * dtype.size() - 1 - mantissa)) - 1;
    change_bits(element, |bits| {
        let exponent = bits >> mantissa & exponents;
        (exponent > 1 && exponent < exponents).then(|| bits - (1 << mantissa))
    });
}

/// Makes a number different that halving and another order leave as it is: zero becomes 0.5 or 1, and an integer
/// moves by one towards zero, so that an index remains one.
fn nudge(dtype: DType, element: &mut [u8]) {
    let bits_in_all = 8 * dtype.size();
    let sign = 1_u64 << (bits_in_all - 1);
    change_bits(element, |bits| match mantissa(dtype) {
        Some(mantissa) => {
            let half = ((1_u64 << (bits_in_all - 2 - mantissa)) - 2) << mantissa;
            (bits & !sign == 0).then_some(half)
        }
        None if bits == 0 => Some(1),
        None => {
            let is_signed = matches!(dtype, DType::I64 | DType::I32 | DType::I16 | DType::I8);
            let is_negative = is_signed && bits & sign != 0;
            Some(if is_negative { bits.wrapping_add(1) } else { bits - 1 })
        }
    });
}

/// Changes a value from the command line, such as `2x2xf32=1 2 3 4`. Without a value, all elements are zero.
fn other_literal(text: &str, integers: Integers) -> String {
    let (kind, values) = text.split_once('=').unwrap_or((text, "0"));
    let element = kind.rsplit('x').next().unwrap_or(kind);
    let is_float = element.starts_with('f') || element.starts_with("bf");
    let is_integer = element != "i1" && element.starts_with(['i', 's', 'u']);
    let is_separator = |c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']');
    let numbers: Vec<&str> = values.split(is_separator).filter(|number| !number.is_empty()).collect();
    let parsed: Option<Vec<f64>> = numbers.iter().map(|number| number.parse().ok()).collect();
    let Some(parsed) = parsed.filter(|_| is_float || (integers != Integers::Kept && is_integer)) else {
        return text.to_owned();
    };
    let halved = |value: &f64| if is_float { value / 2.0 } else { *value };
    // The text of an integer is kept, because a floating-point number can't represent every one.
    let moved = |(text, value): (&&str, &f64)| match is_float {
        true => halved(value).to_string(),
        false => (*text).to_owned(),
    };
    let nudged = |(at, value): (usize, &f64)| match *value {
        0.0 if at % 2 == 0 => if is_float { "0.5" } else { "1" }.to_owned(),
        value if at % 2 == 0 && !is_float => (value - value.signum()).to_string(),
        value => value.to_string(),
    };
    let changed: Vec<String> = if parsed.iter().rev().map(halved).eq(parsed.iter().copied()) {
        if !is_float && integers != Integers::Nudged {
            return text.to_owned();
        }
        parsed.iter().enumerate().map(nudged).collect()
    } else {
        numbers.iter().zip(&parsed).rev().map(moved).collect()
    };
    let mut next = changed.into_iter();
    let mut other = format!("{kind}=");
    let mut is_in_number = false;
    for c in values.chars() {
        if is_separator(c) {
            other.push(c);
            is_in_number = false;
        } else if !is_in_number {
            other.push_str(&next.next().unwrap_or_default());
            is_in_number = true;
        }
    }
    other
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "//===---===//\n// @mod : version 0\n//===---===//\n\nImported Functions:\n  \
        [  0] main(i32) -> ()\n\nExported Functions:\n  [  0] main$async(!vm.ref<?>) -> ()\n  \
        [  1] main(!vm.ref<?>, i32) -> (!vm.ref<?>, f32)\n        iree.abi.declaration: sync func @main\n  \
        [  2] __init() -> ()\n  [  3] odd(tuple<i64>...) -> ()\n\n// Sections\n";

    #[test]
    fn a_signature_is_what_the_tool_prints_of_the_exported_function() {
        let signature = Signature::of("main", DUMP).unwrap();
        assert_eq!(signature.name, "mod.main");
        assert_eq!(signature.parameters, ["!vm.ref<!hal.buffer_view>", "i32"]);
        assert_eq!(signature.results, ["!vm.ref<!hal.buffer_view>", "f32"]);
        let none = Signature::of("__init", DUMP).unwrap();
        assert!(none.parameters.is_empty() && none.results.is_empty());
        let why = |function| match Signature::of(function, DUMP).unwrap_err() {
            NoCaller::NoFunction(why) | NoCaller::Unchecked(why) => why,
        };
        assert_eq!(why("mai"), "the module exports `main`, `odd`, but no function `mai`");
        let single = DUMP.replace("odd", "__odd").replace("] main(!", "] dense(!");
        let NoCaller::NoFunction(single) = Signature::of("main", &single).unwrap_err() else { panic!() };
        assert_eq!(single, "the module exports `dense`, but no function `main`: set `function = \"dense\"`");
        assert!(why("odd").contains("`tuple<i64>...`"));
        assert!(Signature::of("main", "").is_err());
    }

    #[test]
    fn the_calling_module_passes_the_inputs_twice_and_returns_them() {
        insta::assert_snapshot!(Signature::of("main", DUMP).unwrap().caller());
        insta::assert_snapshot!(Signature::of("__init", DUMP).unwrap().caller());
    }

    #[test]
    fn numbers_are_reversed_and_halved_and_integers_only_where_there_is_nothing_else() {
        assert_eq!(other_literal("2x2xf32=[1 2][3 -4]", Integers::Kept), "2x2xf32=[-2 1.5][1 0.5]");
        assert_eq!(other_literal("3xbf16=1", Integers::Kept), "3xbf16=0.5");
        assert_eq!(other_literal("3xi64=1,2,3", Integers::Kept), "3xi64=1,2,3");
        assert_eq!(other_literal("3xi64=1,2,3", Integers::Nudged), "3xi64=3,2,1");
        assert_eq!(other_literal("3xf32", Integers::Kept), "3xf32=0.5");
        assert_eq!(other_literal("4xi32=7", Integers::Nudged), "4xi32=6");
        assert_eq!(other_literal("3xi32=[7 0 7]", Integers::Nudged), "3xi32=[6 0 6]");
        assert_eq!(other_literal("3xsi8=0 -2 0", Integers::Nudged), "3xsi8=1 -2 1");
        assert_eq!(other_literal("2x2xf32=0 -0 0 0", Integers::Kept), "2x2xf32=0.5 -0 0.5 0");
        assert_eq!(other_literal("2xi1=1 0", Integers::Nudged), "2xi1=1 0");
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, raw: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            InputArg::File(TensorFile { path, raw: Some(raw.to_owned()) })
        };
        let floats: Vec<u8> = [1.0_f32, 0.0, -3.0].into_iter().flat_map(f32::to_le_bytes).collect();
        let integers: Vec<u8> = [1_i16, 2].into_iter().flat_map(i16::to_le_bytes).collect();
        let inputs = [file("a", "3xf32", &floats), file("b", "2xsi16", &integers)];
        let others = made(&inputs, folder.path()).unwrap().unwrap();
        assert_eq!(others[1], inputs[1]);
        let values = |input: &InputArg| {
            let InputArg::File(file) = input else { panic!() };
            file.read(&fs::read(&file.path).unwrap()).unwrap().to_f64()
        };
        assert_eq!(values(&others[0]), [-1.5, 0.0, 0.5]);
        assert_eq!(values(&made(&inputs[1..], folder.path()).unwrap().unwrap()[0]), [2.0, 1.0]);
        // An index that is zero remains one if another input shows the difference.
        let zeros = file("zeros", "2xsi16", &[0; 4]);
        let others = made(&[inputs[1].clone(), zeros.clone()], folder.path()).unwrap().unwrap();
        assert_eq!(others[1], zeros);
        let other = |name: &str, raw: &str, bytes: &[u8]| {
            values(&made(&[file(name, raw, bytes)], folder.path()).unwrap().unwrap()[0])
        };
        for (name, raw) in [("c", "2xf32"), ("d", "4xbf16"), ("e", "4xf16"), ("f", "1xf64")] {
            assert!(
                other(name, raw, &[0; 8]).iter().enumerate().all(|(at, value)| *value == [0.5, 0.0][at % 2])
            );
        }
        assert_eq!(other("g", "2xi32", &[7, 0, 0, 0, 7, 0, 0, 0]), [6.0, 7.0]);
        assert_eq!(other("h", "3xi8", &[0xff, 0, 0xff]), [0.0, 0.0, 0.0]);
        assert_eq!(other("i", "1xui8", &[0xff]), [254.0]);
        assert_eq!(made(&[file("j", "2xi1", &[1, 1])], folder.path()).unwrap(), None);
    }
}
