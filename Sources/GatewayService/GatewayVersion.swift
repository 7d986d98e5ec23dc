/// The version of this build.
package enum GatewayVersion {
    /// The version, as `--version` prints it and `build_info` carries it.
    package static let current = "0.1.0"
}
