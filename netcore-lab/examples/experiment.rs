//! Runs one experiment and prints its table.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).ok_or("usage: experiment NAME")?;
    let experiment = netcore_lab::run(&name, &mut |done| eprint!("\r{:3.0} %", done * 100.0))?;
    println!("\n{}", netcore_lab::report::text(&experiment));
    Ok(())
}
