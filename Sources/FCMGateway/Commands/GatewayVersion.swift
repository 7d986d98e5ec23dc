/// The version of this build.
enum GatewayVersion {
    /// The version, as `--version` prints it and `build_info` carries it.
    static let current = "0.1.0"
}
