import ArgumentParser
import Foundation

/// `doctor`: looks at everything the gateway needs, and says what to do about what is not well.
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Check everything the gateway needs, and explain what is wrong.",
        discussion: """
            Run it as the gateway's user, with the gateway's configuration and variables; it changes nothing, and works \
            beside a gateway that runs. It checks the configuration, files and their permissions, certificates, the data \
            directory, the store and its master key, the audit trail, the clock, descriptors, memory and cores, the \
            listeners' ports, the tenants' credentials and the way to FCM.

            A running gateway is asked at GATEWAY_ADMIN_URL, or where the configuration has it, and proves each tenant's \
            credentials by a dry run. Exit codes: 0 no problem (there may be warnings), 1 problems, 64 wrong usage.
            """
    )

    @OptionGroup var options: ConfigOptions
    @Flag(name: .long, help: "Call nothing outside of this machine: neither FCM nor a gateway's check of credentials.")
    var offline = false
    @Flag(name: .long, help: "Check the store's structure even if it has more than a gibibyte.") var thorough = false
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let examination = Examination(
            file: self.options.config,
            environment: ProcessInfo.processInfo.environment,
            isOffline: self.offline,
            isThorough: self.thorough
        )
        let diagnosis = await examination.diagnosis()
        try diagnosis.output(json: self.output.output == .json).write()
        if diagnosis.status == .problem { throw ExitCode.failure }
    }
}
