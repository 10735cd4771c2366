//! Watches the migrations, which a macro embeds.

fn main() {
    println!("cargo:rerun-if-changed=../../migrations");
}
