//! Properties that every document must have, whatever its content.

use super::*;

/// Texts that try to make each form do something.
const HOSTILE: [&str; 7] = [
    "a|b\\|c @everyone #1 https://evil.example/?q=1",
    "`` ` ``</details><script>alert(1)</script>",
    "::error::x\n::add-mask::y\u{1b}[2J\r\n- [link](https://evil.example)",
    "\u{202e}desrever\u{202c} zero\u{200b}width ##[error]x",
    "<!-- comment --> <b onclick='x()'>&amp; \"quoted\"",
    "![image](https://evil.example/a.png) www.evil.example gh-1",
    "",
];

/// Returns every kind of block with the text in every kind of part.
fn document(text: &str) -> Vec<Block<'_>> {
    let all = || {
        let tones = [Tone::Plain, Tone::Strong, Tone::Good, Tone::Doubt, Tone::Bad];
        let strong =
            tones.into_iter().fold(Text::default(), |all, tone| all.with(Part::Strong(text.into(), tone)));
        let text = strong.say(text).name(text).message(text).with(Part::Copied(text.into()));
        text.with(Part::Icon("✅"))
    };
    let cell = || Cell { lines: vec![all(), text.into(), Text::named(text)], tone: Tone::Strong };
    let table = Table {
        columns: vec![Column::text(Text::named(text)), Column::number("one"), Column::text("other")],
        rows: vec![vec![cell(), Text::named("9.5 %").into(), cell()]; 3],
        ..Table::default()
    };
    let list = || Block::List(vec![Item { text: text.into(), details: vec![all(), text.into()] }; 3]);
    vec![
        Block::Title(all()),
        Block::Prose(all()),
        Block::Callout("NOTE", all()),
        list(),
        Block::Table(vec![table]),
        Block::Section { title: "Open", count: None, blocks: vec![list()] },
        Block::Section { title: "Folded", count: Some(3), blocks: vec![list()] },
        Block::Break,
        Block::Small(all()),
    ]
}

#[test]
fn untrusted_text_is_text_in_every_form() {
    for text in HOSTILE {
        let blocks = document(text);
        let options = TerminalOptions::default();
        let lines = terminal(&blocks, options);
        for form in [&lines, &markdown(&blocks, usize::MAX), &html_page(text, &blocks)] {
            let hidden = form.chars().find(|letter| *letter != '\n' && is_hidden(*letter));
            assert_eq!(hidden, None, "{form}");
            assert!(!form.contains("##["), "{form}");
            assert!(form.lines().all(|line| !line.trim_start().starts_with("::")), "{form}");
        }
        let page = html_page(text, &blocks);
        assert!(!page.contains("<script") && !page.contains("onclick='") && !page.contains("<!--"), "{page}");
        // Outside of code spans, nothing may be a mention, a link or markup.
        let markdown = markdown(&blocks, usize::MAX);
        for line in markdown.lines() {
            let bare = without_entities(&without_code(line));
            for markup in ["@everyone", "#1", "https://", "](", "<script", "<b", "<!--", "www.e", "gh-1"] {
                let ours = markup == "<b" && bare.replace("<br>", "").find("<b").is_none();
                assert!(ours || !bare.contains(markup), "{markup}: {line}");
            }
        }
        let rows: Vec<&str> = markdown.lines().filter(|line| line.starts_with('|')).collect();
        assert!(rows.len() == 5 && rows.iter().all(|row| row.matches('|').count() == 4), "{rows:#?}");
    }
}

/// Returns a line with each entity replaced by one harmless letter.
fn without_entities(line: &str) -> String {
    let mut parts = line.split("&#");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |bare, part| bare + "·" + part.split_once(';').expect("an entity ends").1)
}

/// Returns a line without its code spans, as GitHub detects them.
fn without_code(line: &str) -> String {
    let (mut bare, mut rest) = (String::new(), line);
    while let Some(start) = rest.find('`') {
        bare.push_str(&rest[..start]);
        let fence: String = rest[start..].chars().take_while(|letter| *letter == '`').collect();
        let mut inside = &rest[start + fence.len()..];
        loop {
            let at = inside.find('`').expect("a code span ends");
            let run = inside[at..].chars().take_while(|letter| *letter == '`').count();
            inside = &inside[at + run..];
            if run == fence.len() {
                break;
            }
        }
        rest = inside;
    }
    bare + rest
}

#[test]
fn no_line_is_wider_than_the_terminal_and_no_word_is_split_that_fits() {
    let name = "transformer-layer/peak-device-memory/single_repetition";
    let row = || vec![Text::named(name).into(), "12.4 → 13.9 ms".into(), "regressed: beyond 1 %".into()];
    let columns = vec![Column::text("benchmark"), Column::number("base → head"), Column::text("verdict")];
    let table =
        |one_line| Table { columns: columns.clone(), rows: vec![row(), row()], one_line, ..Table::default() };
    for width in 50..120 {
        let blocks = [Block::Table(vec![table(true), table(false)])];
        let text = terminal(&blocks, TerminalOptions { width, ..TerminalOptions::default() });
        assert!(text.lines().all(|line| line.chars().count() <= usize::from(width)), "{width}\n{text}");
        let words =
            ["transformer-", "device-", "memory/", "repetition", "12.4 → 13.9 ms", "regressed:", "1 %"];
        assert!(words.iter().all(|word| text.contains(word)), "{width}\n{text}");
    }
    for text in HOSTILE {
        for width in [40, 60, 80, 160] {
            let blocks =
                [Block::Prose(text.into()), Block::list([Text::named(text), Text::message_of(text)])];
            let shown = terminal(&blocks, TerminalOptions { width, ..TerminalOptions::default() });
            assert!(shown.lines().all(|line| line.chars().count() <= usize::from(width)), "{width}\n{shown}");
        }
    }
}

#[test]
fn a_page_keeps_to_its_bytes_and_counts_what_it_left_out() {
    let items = || (0..500).map(|at| Text::named(format!("name {at}")));
    let blocks = [Block::Title("Title".into()), Block::list(items()), Block::list(items())];
    for most in [1_000, 5_000, 12_000] {
        let page = markdown(&blocks, most);
        assert!(page.len() <= most && page.len() > most / 2, "{} of {most}", page.len());
        assert!(page.contains("more, in the JSON report."), "{page}");
    }
    assert!(markdown(&blocks, 20).len() <= 20);
}
