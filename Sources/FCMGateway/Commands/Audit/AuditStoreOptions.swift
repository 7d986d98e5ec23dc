import ArgumentParser
import Foundation
import GatewayCore
import GatewayService
import GatewayStorage

/// The options of audit verbs that read the store directly, whether or not a gateway serves it.
struct AuditStoreOptions: ParsableArguments {
    /// Where the configuration is.
    @OptionGroup var options: ConfigOptions

    /// Another data directory than the configured one.
    @Option(
        name: .long,
        help: "The data directory, instead of the configured one; dev's secrets are found there.",
        completion: .directory
    )
    var dataDir: String?

    /// Reads the configuration, with another data directory if one is named.
    ///
    /// - Throws: `ExitCode.failure` after the problems were printed.
    func load() throws -> GatewayConfiguration {
        var environment = ProcessInfo.processInfo.environment
        if let dataDir = self.dataDir {
            environment["GATEWAY_DATA_DIR"] = dataDir
            let keyFile = "\(dataDir)/master.key"
            let isGiven = environment["GATEWAY_MASTER_KEY"] != nil || environment["GATEWAY_MASTER_KEY_FILE"] != nil
            if !isGiven, FileManager.default.fileExists(atPath: keyFile) {
                environment["GATEWAY_MASTER_KEY_FILE"] = keyFile
            }
        }
        return try self.options.load(environment: environment)
    }
}
