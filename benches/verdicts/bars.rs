//! Goals of the method, and the comparison of its results with them.

use crate::tally::Tally;

/// The limit of a figure, as a share.
#[derive(Clone, Copy)]
pub enum Bar {
    Most(f64),
    Least(f64),
}

#[derive(Default)]
pub struct Bars(Vec<(String, Bar, String, bool)>);

impl Bars {
    pub fn add(&mut self, what: String, bar: Bar, found: &Tally) {
        let met = match bar {
            Bar::Most(most) => found.mean() <= most,
            Bar::Least(least) => found.mean() >= least,
        };
        self.0.push((what, bar, found.percent(), met));
    }

    pub fn print(&self) {
        println!("## Bars\n{:<64} {:>9} {:>14}", "", "bar", "found");
        for (what, bar, found, met) in &self.0 {
            let bar = match bar {
                Bar::Most(most) => format!("≤ {}", 100.0 * most),
                Bar::Least(least) => format!("≥ {}", 100.0 * least),
            };
            println!("{what:<64} {bar:>9} {found:>14}{}", if *met { "" } else { "  missed" });
        }
        println!();
    }
}
