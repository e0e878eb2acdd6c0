//! Proves: the explanation of any plan, read again, is the same plan; files and options apply in
//! their order; every slip is refused with its place and the intended word; the page of the
//! documentation is that of the table.

use super::file;
use super::keys::keys;
use super::value::Value;
use super::*;
use crate::disk::DiskName;
use crate::names::MachineName;
use crate::own_models::OwnModels;
use crate::trials::simulate;
use filesystem::collective::Strategy;
use interface::ExitCode;
use interface::UserError;
use policy::ReplacementPolicies;
use units::SplitMix64;
use value::{ConvertValue, Kind};
use world_simulated::{Pieces, QueueKind};

/// The plan of a file with this text, and options.
fn plan_of(text: &str, options: Vec<Setting>) -> Result<SimulationPlan, UserError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("case.toml");
    std::fs::write(&path, text).unwrap();
    let (policies, models) = (ReplacementPolicies::default(), OwnModels::default());
    SimulationPlan::resolve(Some(&path), options, &policies, &models)
}

fn refused(text: &str) -> UserError {
    let error = plan_of(text, Vec::new()).expect_err(text);
    assert_eq!(error.code, ExitCode::Usage, "{text}");
    assert!(!error.help.is_empty() && !error.cause.is_empty(), "{text}");
    error
}

/// Pseudorandom numbers, the same in each run.
struct Numbers(SplitMix64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0.below(end)
    }

    /// Some value that a kind permits.
    fn value(&mut self, kind: Kind) -> Value {
        match kind {
            Kind::Number { least, most, .. } => {
                let span = (most - least).min(u64::MAX - 1) + 1;
                Value::Number(least + self.below(span))
            }
            Kind::Size => Value::Number(1 + self.below(1 << 20)),
            Kind::Flag => Value::Flag(self.below(2) == 1),
            Kind::Word(words) => {
                Value::Word(words[self.below(words.len() as u64) as usize].to_owned())
            }
            Kind::List { of, may_be_empty } => {
                let count = self.below(3) + u64::from(!may_be_empty);
                Value::List((0..count).map(|_| self.value(*of)).collect())
            }
        }
    }

    /// A plan in which about half of the keys have some value. A plan that cannot be simulated can
    /// still be explained.
    fn plan(&mut self) -> SimulationPlan {
        let mut plan = SimulationPlan::default();
        for key in keys() {
            if self.below(2) == 1 {
                let value = self.value(key.kind);
                // Pieces cost something only where they are batched, or copied directly.
                let heard = key.set(&mut plan, &value);
                let dependent = ["gather-piece-ps", "direct-piece-ps", "direct-interval-ps"];
                let depends = dependent.contains(&key.name);
                assert!(heard.is_ok() || depends, "{}: {value:?}", key.name);
            }
        }
        plan
    }
}

#[test]
fn what_is_explained_is_the_same_plan() {
    // Proves: for each of many plans, and each preset, the explanation read as a file gives the
    // same scenarios, the file sets every key of it, and the explanation of the result is the same.
    let mut numbers = Numbers(SplitMix64::new(1));
    let of_preset = |name: &str| plan_of(&format!("machine = {name:?}"), Vec::new()).unwrap();
    let presets = MachineName::WORDS.iter().map(|name| of_preset(name));
    let random = (0..500).map(|_| numbers.plan());
    for plan in presets.chain(random) {
        let explained = plan.explain();
        let settings = file::settings("again.toml", &explained).unwrap();
        let mut again = SimulationPlan::default();
        for setting in settings {
            setting.key.set(&mut again, &setting.value).unwrap();
            again.origins.insert(setting.key.name, setting.origin);
        }
        assert_eq!(again.scenarios(), plan.scenarios(), "{explained}");
        let said = keys().filter(|key| key.get(&plan).is_some()).count();
        assert_eq!(again.origins.len(), said);
        let values = |text: &str| -> Vec<String> {
            text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
        };
        assert_eq!(values(&again.explain()), values(&explained));
        assert!(explained.lines().all(|line| !line.starts_with('#') || line.len() <= 100));
    }
}

#[test]
fn an_explained_scenario_gives_the_same_digest() {
    let small = "machine = \"tocs97\"\npattern = \"rc\"\nsize = \"256KiB\"\nclients = 3\n\
                 servers = 2\ntrials = 2\nstrategy = [\"caching\", \"disk-directed\"]\n\
                 layout = \"random-blocks\"\n[parameters]\nbuffers-per-disk = 3\n";
    let rows = |plan: &SimulationPlan| -> Vec<_> {
        let row = |scenario| simulate(scenario).unwrap().results.remove(0);
        let rows = plan.scenarios().iter().map(row).collect::<Vec<_>>();
        rows.into_iter().map(|row| (row.digest, row.mib_s, row.changed)).collect()
    };
    let plan = plan_of(small, Vec::new()).unwrap();
    let again = plan_of(&plan.explain(), Vec::new()).unwrap();
    assert_eq!(rows(&plan), rows(&again));
    assert_eq!(rows(&plan)[0].2, ["buffers-per-disk = 3"]);
    let other = plan_of(small, vec![Setting::option("buffers-per-disk", "1")]).unwrap();
    assert_ne!(rows(&plan)[1].0, rows(&other)[1].0, "buffers make a difference");
}

#[test]
fn options_come_before_the_file() {
    let text = "clients = 4\nservers = 3\nmachine = \"tocs97\"\n[parameters]\nqueue = \"fcfs\"\n";
    let options = vec![
        Setting::option("clients", "5"),
        Setting::parameter("buffers-per-disk = 7").unwrap(),
        Setting::option("disk", "nvme"),
    ];
    let plan = plan_of(text, options).unwrap();
    let scenario = plan.scenarios().remove(0);
    assert_eq!((scenario.clients, scenario.servers), (5, 3));
    let machine = &scenario.machine;
    assert_eq!((machine.queue, machine.buffers_per_disk), (QueueKind::Fcfs, 7));
    assert_eq!((machine.disk.to_string().as_str(), machine.outstanding_per_disk), ("nvme", 4));
    let explained = plan.explain();
    for whence in [
        "# Value: option --clients.\nclients = 5\n",
        "case.toml, line 2.\nservers = 3\n",
        "case.toml, line 5; preset tocs97 has \"cscan-of-file\".\nqueue = \"fcfs\"\n",
        "# Value: option --set buffers-per-disk; preset tocs97 has 2.\nbuffers-per-disk = 7\n",
        "# Value: preset tocs97.\noutstanding-per-disk = 4\n",
        "# Value: default.\nsize = \"10MiB\"\n",
    ] {
        assert!(explained.contains(whence), "{whence} in {explained}");
    }
    let json = plan.explain_as_json();
    assert_eq!(json["scenario"]["clients"]["from"]["option"], "--clients");
    assert_eq!(json["parameters"]["queue"]["value"], "fcfs");
    assert_eq!(json["parameters"]["queue"]["from"]["line"], 5);
    assert_eq!(machine.changes(), ["disk = \"nvme\"", "queue = \"fcfs\"", "buffers-per-disk = 7"]);
    assert_eq!(
        machine.options(),
        "--machine tocs97 --disk nvme --set queue=fcfs --set buffers-per-disk=7"
    );
}

#[test]
fn trials_that_were_said_are_kept() {
    let trials = |plan: SimulationPlan| plan.with_default_trials(1).scenarios()[0].trials;
    assert_eq!(trials(SimulationPlan::default()), 1);
    assert_eq!(trials(plan_of("trials = 5", Vec::new()).unwrap()), 5);
}

#[test]
fn pieces_are_gathered_only_together() {
    let batched = plan_of("[parameters]\npieces = \"batched\"", Vec::new()).unwrap();
    let gather = Pieces::Batched { gather_ps: 3_900_000 };
    assert_eq!(batched.base.machine.messages.pieces, gather);
    let text = "[parameters]\ngather-piece-ps = 7\npieces = \"batched\"\n";
    let gather = Pieces::Batched { gather_ps: 7 };
    let plan = plan_of(text, Vec::new()).unwrap();
    assert_eq!(plan.base.machine.messages.pieces, gather, "whatever the order of lines");
    assert!(refused("[parameters]\ngather-piece-ps = 7").cause.contains("individual pieces"));
}

#[test]
fn slips_are_refused_where_they_are() {
    // Proves: the error has the file and the line, the cause the mistake, the help the correction.
    for (text, error, cause, help) in [
        ("\nclient = 4", "line 2: there is no key \"client\"", "no key", "did you mean clients?"),
        ("[parameter]", "line 1: there is no key", "[parameters]", "did you mean parameters?"),
        ("\nparameters = 5", "line 2: there is no key", "a table", "a line [parameters]"),
        ("[[parameters]]\nqueue = \"fcfs\"", "line 1", "not a table", "a line [parameters]"),
        ("\n[parameters]\nbuffer_per_disk = 4", "line 3", "no param", "mean buffers-per-disk?"),
        ("queue = \"cscan\"", "line 1", "a parameter", "below a line [parameters]"),
        ("[parameters]\nclients = 1", "line 2", "[parameters]", "above the line [parameters]"),
        ("clients = \"many\"", "clients cannot be \"many\"", "from 1 to 1048576", "whole number"),
        ("clients = -4", "clients cannot be -4", "from 1 to", "whole number"),
        ("clients = 1.5", "clients cannot be 1.5", "from 1 to", "whole number"),
        ("disks-per-server = 0", "disks-per-server cannot be 0", "from 1", "docs/scenarios.md"),
        ("[parameters]\nbuffers-per-disk = 0", "line 2", "from 1 to 4096", "docs/scenarios.md"),
        ("[parameters]\nsend-ns = 10000001", "line 2", "nanoseconds", "docs/scenarios.md"),
        ("machine = \"tocs79\"", "cannot be \"tocs79\"", "tr94, tocs97", "did you mean tocs97?"),
        ("machine = 94", "line 1", "one of tr94", "docs/scenarios.md"),
        ("disk = \"hp97650\"", "line 1", "disk models are hp97560", "did you mean hp97560?"),
        ("strategy = [\"cachng\"]", "line 1", "not a strategy", "did you mean caching?"),
        ("strategy = []", "line 1", "list is empty", "a list"),
        ("pattern = \"rbcc\"", "line 1", "\"rbcc\"", "did you mean"),
        ("[parameters]\nqueue = \"scan\"", "line 2", "fcfs, cscan", "did you mean cscan?"),
        ("size = \"16EiB\"", "line 1", "4EiB", "docs/scenarios.md"),
        ("sync = 1", "line 1", "true or false", "docs/scenarios.md"),
        ("clients = 4\nclients = 5", "line 2: this is not TOML", "duplicate", "quotes"),
        ("clients = many", "line 1: this is not TOML", "", "quotes"),
        ("clients = { many = 4 }", "line 1", "whole number", "docs/scenarios.md"),
        ("size = 65536\nrecord = 7", "case.toml: ", "7 bytes", "multiple"),
        ("disk = \"none.toml\"", "none.toml", "", "hp97560.toml"),
    ] {
        let said = refused(text);
        assert!(said.error.contains(error), "{text}: {said}");
        assert!(said.cause.contains(cause), "{text}: {said}");
        assert!(said.help.contains(help), "{text}: {said}");
        assert!(said.error.contains("case.toml"), "{text}: {said}");
    }
}

#[test]
fn machines_that_cannot_be_are_refused() {
    // A block larger than the track buffer of a disk.
    let said = refused("block = \"256KiB\"");
    assert!(said.cause.contains("262144") && said.cause.contains("131072"), "{said}");
    assert!(said.help.contains("smaller block"), "{said}");
    assert!(plan_of("block = \"128KiB\"", Vec::new()).is_ok());
    assert!(plan_of("block = \"256KiB\"\ndisk = \"nvme\"", Vec::new()).is_ok());
    // A torus too small for the nodes.
    let torus =
        |width, height| format!("[parameters]\ntorus-width = {width}\ntorus-height = {height}\n");
    let said = refused(&torus(5, 6));
    assert!(said.cause.contains("5 by 6 cannot hold 32 nodes"), "{said}");
    for (width, height) in [(6, 6), (4, 8), (32, 0), (0, 3), (0, 0)] {
        assert!(plan_of(&torus(width, height), Vec::new()).is_ok(), "{width} by {height}");
    }
    let said = refused("network = \"exact-torus\"\n[parameters]\nnetwork-hop-ns = 0");
    assert!(said.cause.contains("whole number of bytes"), "{said}");
    // More than a transfer or a memory can hold.
    assert!(refused("clients = 65537").help.contains("65536 clients"));
    assert!(refused("clients = 8192\nservers = 4096").help.contains("16777216 pairs"));
    assert!(plan_of("clients = 65536", Vec::new()).is_ok());
    let many = |records: usize| format!("record = [{}]", vec!["8"; records].join(", "));
    assert!(plan_of(&many(682), Vec::new()).is_ok(), "of two patterns and three strategies");
    let said = refused(&many(683));
    assert!(said.cause.contains("more than 4096 combinations"), "{said}");
    assert!(said.help.contains("pattern, record or strategy"), "{said}");
    assert!(refused("servers = 1048576\ndisks-per-server = 2").cause.contains("1048576"));
}

#[test]
fn counts_follow_from_the_ratio_of_clients_and_servers() {
    let counts = |text: &str, options: Vec<Setting>| {
        let plan = plan_of(text, options).unwrap_or_else(|error| panic!("{text}: {error}"));
        let scenario = plan.scenarios().remove(0);
        let again = plan_of(&plan.explain(), Vec::new()).unwrap();
        assert_eq!(again.scenarios(), plan.scenarios(), "{text}");
        (scenario.clients, scenario.servers)
    };
    assert_eq!(counts("clients-per-server = 2", Vec::new()), (32, 16));
    assert_eq!(counts("clients-per-server = 4\nservers = 3", Vec::new()), (12, 3));
    assert_eq!(counts("clients = 12\nclients-per-server = 4", Vec::new()), (12, 3));
    assert_eq!(counts("clients = 8\nservers = 2\nclients-per-server = 4", Vec::new()), (8, 2));
    let ratio = || vec![Setting::option("clients-per-server", "8")];
    assert_eq!(counts("servers = 2", ratio()), (16, 2));
    assert_eq!(counts("clients-per-server = 3\nservers = 2", ratio()), (16, 2));
    let explained = plan_of("servers = 2", ratio()).unwrap().explain();
    let derived = "# Value: option --clients-per-server.\nclients = 16\n";
    assert!(explained.contains(derived), "{explained}");
    // Without a ratio there is no such line.
    assert!(!plan_of("", Vec::new()).unwrap().explain().contains("\nclients-per-server"));

    for (text, cause) in [
        ("clients = 9\nservers = 2\nclients-per-server = 4", "9 clients and 2 servers"),
        ("clients = 9\nclients-per-server = 4", "9 clients are no multiple"),
        ("clients-per-server = 1048576", "16 servers would have more than 1048576 clients"),
    ] {
        let said = refused(text);
        let line = text.lines().count();
        let error = format!("line {line}: clients-per-server cannot be ");
        assert!(said.error.contains(&error) && said.cause.contains(cause), "{text}: {said}");
        assert!(said.help.contains("leave out one of clients, servers"), "{said}");
    }
    let both = plan_of("clients = 16\nservers = 4", ratio()).unwrap_err();
    assert_eq!(both.error, "--clients-per-server cannot be \"8\"");
    assert!(refused("clients-per-server = 0").cause.contains("from 1 to"));
    assert!(refused("clients-per-server = 8192").help.contains("65536 clients"));
}

#[test]
fn parameters_are_set_by_name() {
    let error = Setting::parameter("buffers=4").unwrap_err();
    assert!(error.help.contains("buffers-per-disk"), "{error}");
    assert!(Setting::parameter("clients=4").is_err(), "it has an option of its own");
    let set = |assignment| {
        let setting = Setting::parameter(assignment).unwrap();
        let (policies, models) = (ReplacementPolicies::default(), OwnModels::default());
        SimulationPlan::resolve(None, vec![setting], &policies, &models)
    };
    assert!(set("buffers-per-disk").is_err(), "without a value");
    let waits = |plan: SimulationPlan| plan.base.machine.waits_for_medium;
    assert_eq!(waits(set("writes-wait-for-medium=").unwrap()), []);
    let both = set("writes-wait-for-medium=ddio,caching").unwrap();
    assert_eq!(waits(both), [Strategy::Caching, Strategy::DiskDirected]);
}

#[test]
fn keys_are_in_order() {
    // Proves: names are unique and those of options of `sim`; presets and defaults are valid
    // values.
    let mut names: Vec<&str> = keys().map(|key| key.name).collect();
    assert_eq!(names[0], "machine", "it gives the others their values");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), keys().count());
    for key in keys() {
        let (letters, plan) =
            (|letter: char| letter.is_ascii_lowercase(), SimulationPlan::default());
        assert!(key.name.chars().all(|it| letters(it) || it == '-' || it.is_ascii_digit()));
        assert!(
            key.meaning.to_string().ends_with('.')
                && (key.source.is_empty() || key.source.ends_with('.'))
        );
        let value = key.get(&plan);
        assert!(value.is_none_or(|value| key.kind.permits(&value)), "{}", key.name);
    }
    let strange = Value::Word("a\"b\\c\u{7f}\n.toml".to_owned());
    let settings = file::settings("x", &format!("disk = {}", strange.in_toml())).unwrap();
    assert_eq!(settings[0].value, strange);
    assert!(DiskName::from_value(&strange).is_ok());
}

#[test]
fn the_page_is_that_of_the_table() {
    let page = include_str!("../../../../docs/scenarios.md");
    assert!(page == scenarios_page(), "docs/scenarios.md is stale: run `cargo x scenarios-page`");
}

#[test]
fn the_example_of_the_page_is_a_scenario() {
    let page = scenarios_page();
    let example = page.split("```").nth(1).and_then(|text| text.strip_prefix("toml\n")).unwrap();
    assert_eq!(plan_of(example, Vec::new()).unwrap().scenarios().len(), 2);
}
