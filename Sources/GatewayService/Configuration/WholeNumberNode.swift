package import Yams

/// Reads whole numbers from YAML nodes.
package enum WholeNumberNode {
    /// The number a node holds, or nil when it is not a plain decimal whole number.
    ///
    /// YAML also calls `0x1F`, `1_000` and `1:30` integers. Those are refused, because the last surprises
    /// whoever meant a time and none of them could be written in the environment.
    package static func value(_ node: Node) -> Int? {
        guard case .scalar(let scalar) = node, scalar.resolvedTagName == .int else { return nil }
        return Int(scalar.string)
    }
}
