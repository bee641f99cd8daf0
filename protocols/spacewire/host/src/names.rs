use hodo_spacewire::network::{NodeId, Place};

/// The names of what is in a network, for reports.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// The nodes.
    pub nodes: Vec<(String, NodeId)>,
    /// The two ends of each link.
    pub links: Vec<[(String, Place); 2]>,
}
