//! One published experiment as a table: `cargo run --release -p netcore-lab --example reproduce fq-tso-autosizing`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "fq-tso-autosizing".into());
    let experiment = netcore_lab::run(&name, &mut |_| ())?;
    println!("{}", netcore_lab::report::text(&experiment));
    Ok(())
}
