//! Simulations that `./test long soak` runs again under other seeds.

mod host;
mod rack;
mod scene;
mod simulated_client;
mod simulated_device;
mod simulated_hub;
