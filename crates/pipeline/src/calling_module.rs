//! The module that benchgate generates to call a benchmark's function ([`super::later_calls`] says why), as text of IREE's
//! virtual machine.

use std::fmt::Write as _;

/// The name of the generated module. If a model's module has the same name, which could only be intended,
/// loading both fails.
const MODULE: &str = "benchgate_calls";
/// Name of the function that calls an asynchronous one and waits until it has finished.
const WAITING: &str = "call_and_wait";
/// Name of the function that returns the inputs as they were given.
pub(super) const GIVEN: &str = "given";
/// Name of the function that calls once and returns the inputs.
pub(super) const ONCE: &str = "once";
/// Name of the function that calls twice and returns the second call's results, then the inputs.
pub(super) const TWICE: &str = "twice";
/// Name of the function that calls once with the second half of the inputs and returns the results.
pub(super) const ALONE: &str = "alone";
/// Name of the function that calls twice with the first half of the inputs, then once with the second half.
/// The results are those of [`TWICE`], then those of the third call.
pub(super) const THRICE: &str = "thrice";
/// Name of the function that fails if a result is still changing.
const SETTLED: &str = "settled";
/// The time between the two readings of a result. Work that takes longer than a slice of the scheduler has begun by then.
const UNTIL_SETTLED_MS: u32 = 20;
/// Name of the function that calls a number of times, then once more, and returns the last results.
pub(super) const LATE: &str = "late";
/// The type that `iree-dump-module` prints for all values that are not numbers.
const REFERENCE: &str = "!vm.ref<?>";

/// The reason why a function can't be called twice in one process.
#[derive(Debug)]
pub(super) enum NoCaller {
    /// The module has no such function, so it can't be called at all.
    NoFunction(String),
    /// The function may be correct, but its second call can't be checked.
    Unchecked(String),
    /// The module submits work to the device and awaits none of it, so only the submission would be timed.
    Unawaited,
}

/// Parameters and results of a function, as types of the virtual machine.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Signature {
    /// The function's name, qualified with its module: `module.main`.
    name: String,
    pub(super) parameters: Vec<&'static str>,
    pub(super) results: Vec<&'static str>,
    /// True if the function also takes a fence to wait for and one that it signals (IREE's `coarse-fences` model).
    pub(super) is_async: bool,
}

/// The functions of the runtime that create fences and wait for them.
const FENCES: &str = "  vm.import private @hal.devices.get(%index: i32) -> !vm.ref<!hal.device>
  vm.import private @hal.fence.create(%device: !vm.ref<!hal.device>, %flags: i64) -> !vm.ref<!hal.fence>
  vm.import private @hal.fence.await(%timeout: i32, %flags: i64, %fences: !vm.ref<!hal.fence> ...) -> i32 attributes {vm.yield}
";

/// Returns the text of a function that calls an asynchronous one and waits for it.
fn call_and_wait(name: &str, declared: &str, [arguments, from, to]: [&str; 3], results: usize) -> String {
    let fence = "!vm.ref<!hal.fence>";
    let and = if from.is_empty() { "" } else { ", " };
    let bound = if results == 0 { String::new() } else { format!("%result:{results} = ") };
    let returned = (0..results).map(|number| format!("%result#{number}")).collect::<Vec<_>>().join(", ");
    let colon = if results == 0 { "" } else { " : " };
    format!(
        "  vm.import private @\"{name}\"({declared}{and}%wait: {fence}, %signal: {fence}) -> ({to})
  vm.func @{WAITING}({declared}) -> ({to}) {{
    %zero = vm.const.i32 0
    %flags = vm.const.i64 0
    %forever = vm.const.i32 -1
    %device = vm.call @hal.devices.get(%zero) : (i32) -> !vm.ref<!hal.device>
    %signal = vm.call @hal.fence.create(%device, %flags) : (!vm.ref<!hal.device>, i64) -> {fence}
    %wait = vm.const.ref.zero : {fence}
    {bound}vm.call @\"{name}\"({arguments}{and}%wait, %signal) : ({from}{and}{fence}, {fence}) -> ({to})
    %status = vm.call.variadic @hal.fence.await(%forever, %flags, [%signal]) : (i32, i64, {fence} ...) -> i32
    vm.cond_fail %status, \"the call failed\"
    vm.return {returned}{colon}{to}
  }}
"
    )
}

/// Returns the text of a function that reads results, waits, reads them again, and fails if they differ. It reads 64
/// bytes of each, beginning with the last one, which is usually written last. Nothing signals the fence, so waiting for
/// it only takes time.
fn settled(results: usize) -> String {
    let (view, buffer) = ("!vm.ref<!hal.buffer_view>", "!vm.ref<!hal.buffer>");
    let declared = (0..results).map(|number| format!("%r{number}: {view}")).collect::<Vec<_>>().join(", ");
    let mut text = format!(
        "  vm.import private @hal.buffer_view.buffer(%view: {view}) -> {buffer}
  vm.import private @hal.buffer.length(%buffer: {buffer}) -> i64
  vm.import private @hal.buffer.load(%buffer: {buffer}, %offset: i64, %length: i32) -> i32
  vm.func private @bytes(%view: {view}) -> i32 {{
    %buffer = vm.call @hal.buffer_view.buffer(%view) : ({view}) -> {buffer}
    %length = vm.call @hal.buffer.length(%buffer) : ({buffer}) -> i64
    %none = vm.const.i32 0
    %byte = vm.const.i32 1
    %zero = vm.const.i64 0
    %one = vm.const.i64 1
    %count = vm.const.i64 64
    %factor = vm.const.i32 31
    %step = vm.div.i64.u %length, %count : i64
    %last = vm.sub.i64 %length, %one : i64
    %is_empty = vm.cmp.eq.i64 %length, %zero : i64
    vm.cond_br %is_empty, ^end(%none : i32), ^next(%last, %zero, %none : i64, i64, i32)
  ^next(%offset: i64, %done: i64, %sum: i32):
    %value = vm.call @hal.buffer.load(%buffer, %offset, %byte) : ({buffer}, i64, i32) -> i32
    %product = vm.mul.i32 %sum, %factor : i32
    %new_sum = vm.add.i32 %product, %value : i32
    %next_offset = vm.sub.i64 %offset, %step : i64
    %next_done = vm.add.i64 %done, %one : i64
    %goes_on = vm.cmp.lt.i64.u %next_done, %count : i64
    vm.cond_br %goes_on, ^next(%next_offset, %next_done, %new_sum : i64, i64, i32), ^end(%new_sum : i32)
  ^end(%all: i32):
    vm.return %all : i32
  }}
  vm.func private @{SETTLED}({declared}) {{
    %zero = vm.const.i32 0
    %flags = vm.const.i64 0
    %time = vm.const.i32 {UNTIL_SETTLED_MS}
"
    );
    // An error is ignored, because writing to a String can't fail.
    let read = |text: &mut String, when: &str| {
        for number in (0..results).rev() {
            let _ = writeln!(text, "    %{when}{number} = vm.call @bytes(%r{number}) : ({view}) -> i32");
        }
    };
    read(&mut text, "early");
    text.push_str(
        "    %device = vm.call @hal.devices.get(%zero) : (i32) -> !vm.ref<!hal.device>
    %never = vm.call @hal.fence.create(%device, %flags) : (!vm.ref<!hal.device>, i64) -> !vm.ref<!hal.fence>
    %status = vm.call.variadic @hal.fence.await(%time, %flags, [%never]) : (i32, i64, !vm.ref<!hal.fence> ...) -> i32
",
    );
    read(&mut text, "late");
    for number in 0..results {
        let _ = writeln!(
            text,
            "    %is_other{number} = vm.cmp.ne.i32 %early{number}, %late{number} : i32\n    \
             vm.cond_fail %is_other{number}, \"a result still changed after the call had returned\""
        );
    }
    text.push_str("    vm.return\n  }\n");
    text
}

impl Signature {
    /// Parses a function's signature from the output of `iree-dump-module`.
    pub(super) fn of(function: &str, dump: &str) -> Result<Self, NoCaller> {
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
        let facts = dump.lines().skip_while(|line| !line.ends_with(&format!("] {function}({types}"))).skip(1);
        let mut facts = facts.take_while(|line| !line.trim_start().starts_with('['));
        let is_async = facts.any(|line| line.trim() == "iree.abi.model: coarse-fences");
        let mut parameters = known(parameters)?;
        if is_async {
            parameters.truncate(parameters.len().saturating_sub(2));
        }
        Ok(Self { name, parameters, results: known(results)?, is_async })
    }

    /// The text of the module that calls the function. It checks that the first call's results no longer change if
    /// `on_cpu`, because only there it can read them.
    pub(super) fn caller(&self, on_cpu: bool) -> String {
        let Self { name, parameters, results, is_async } = self;
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
            let name = if *is_async { WAITING } else { name };
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
        let [from, to] = [parameters.join(", "), results.join(", ")];
        let tensors: Vec<(String, &str)> =
            of_call("first").into_iter().filter(|(_, kind)| on_cpu && is_buffer(kind)).collect();
        if *is_async || !tensors.is_empty() {
            text.push_str(FENCES);
        }
        text.push_str(&if *is_async {
            call_and_wait(name, &declared, [&arguments.join(", "), &from, &to], results.len())
        } else {
            format!("  vm.import private @\"{name}\"({declared}) -> ({to})\n")
        });
        if !tensors.is_empty() {
            text.push_str(&settled(tensors.len()));
        }
        let first = |text: &mut String| {
            call(text, "%first");
            if !tensors.is_empty() {
                let names = tensors.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
                let _ = writeln!(text, "    vm.call @{SETTLED}({names}) : ({}) -> ()", kinds(&tensors));
            }
        };
        for exported in [GIVEN, ONCE, TWICE, ALONE, THRICE, LATE] {
            let _ = writeln!(text, "  vm.export @{exported}");
        }
        let _ = writeln!(text, "  vm.func @{GIVEN}({declared}) -> ({}) {{", kinds(&inputs));
        returned(&mut text, &inputs);
        let _ = writeln!(text, "  vm.func @{ONCE}({declared}) -> ({}) {{", kinds(&inputs));
        call(&mut text, "%first");
        returned(&mut text, &inputs);
        let _ = writeln!(text, "  vm.func @{TWICE}({declared}) -> ({}) {{", kinds(&all));
        first(&mut text);
        call(&mut text, "%second");
        returned(&mut text, &all);
        // A function without parameters has no other inputs.
        let both = if parameters.is_empty() { String::new() } else { both };
        let _ = writeln!(text, "  vm.func @{ALONE}({both}) -> ({}) {{", kinds(&of_call("third")));
        call_with(&mut text, "%third", &others);
        returned(&mut text, &of_call("third"));
        let _ = writeln!(text, "  vm.func @{THRICE}({both}) -> ({}) {{", kinds(&with_third));
        first(&mut text);
        call(&mut text, "%second");
        call_with(&mut text, "%third", &others);
        returned(&mut text, &with_third);
        let counted = if parameters.is_empty() { String::new() } else { format!("{declared}, ") };
        let _ = writeln!(text, "  vm.func @{LATE}({counted}%count: i32) -> ({}) {{", kinds(&of_call("last")));
        text.push_str("    %one = vm.const.i32 1\n    vm.br ^next(%count : i32)\n  ^next(%left: i32):\n");
        call(&mut text, "%each");
        text.push_str("    %fewer = vm.sub.i32 %left, %one : i32\n    vm.cond_br %fewer, ^next(%fewer : i32), ^end\n  ^end:\n");
        call(&mut text, "%last");
        returned(&mut text, &of_call("last"));
        text.push_str("}\n");
        text
    }
}

/// Returns whether a module submits work to a device, and imports no function that waits for it.
pub(super) fn awaits_nothing(dump: &str) -> bool {
    let imported = dump.lines().skip_while(|line| *line != "Imported Functions:").skip(1);
    let imported = imported.take_while(|line| !line.is_empty()).filter_map(|line| line.split_once("] "));
    let names: Vec<&str> = imported.filter_map(|(_, function)| function.split('(').next()).collect();
    names.iter().any(|name| name.starts_with("hal.device.queue.")) && !names.contains(&"hal.fence.await")
}

pub(super) fn is_buffer(kind: &str) -> bool {
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
            NoCaller::Unawaited => String::new(),
        };
        assert_eq!(why("mai"), "the module exports `main`, `odd`, but no function `mai`");
        let single = DUMP.replace("odd", "__odd").replace("] main(!", "] dense(!");
        let NoCaller::NoFunction(single) = Signature::of("main", &single).unwrap_err() else { panic!() };
        assert_eq!(single, "the module exports `dense`, but no function `main`: set `function = \"dense\"`");
        assert!(why("odd").contains("`tuple<i64>...`"));
        assert!(Signature::of("main", "").is_err());
    }

    #[test]
    fn a_module_that_submits_work_must_await_some() {
        let importing = |names: &str| DUMP.replace("  [  0] main(i32) -> ()\n", names);
        let (submits, awaits) = (
            "  [  0] hal.device.queue.execute.indirect(!vm.ref<?>, i64, tuple<i64>...) -> ()\n",
            "  [ 10] hal.fence.await(i32, i64, tuple<!vm.ref<?>>...) -> (i32)\n",
        );
        assert!(awaits_nothing(&importing(submits)));
        assert!(!awaits_nothing(&importing(&format!("{submits}{awaits}"))));
        assert!(!awaits_nothing(&importing("  [  0] hal.buffer.assert(i32) -> ()\n")));
        assert!(!awaits_nothing(DUMP));
    }

    #[test]
    fn the_calling_module_passes_the_inputs_twice_and_returns_them() {
        insta::assert_snapshot!(Signature::of("main", DUMP).unwrap().caller(true));
        insta::assert_snapshot!(Signature::of("main", DUMP).unwrap().caller(false));
        insta::assert_snapshot!(Signature::of("__init", DUMP).unwrap().caller(true));
        let asynchronous = DUMP.replace("i32) -> (!vm", "!vm.ref<?>, !vm.ref<?>) -> (!vm");
        let asynchronous = asynchronous
            .replace(": sync func", ": async func")
            .replace("@main\n", "@main\n        iree.abi.model: coarse-fences\n");
        insta::assert_snapshot!(Signature::of("main", &asynchronous).unwrap().caller(true));
    }
}
