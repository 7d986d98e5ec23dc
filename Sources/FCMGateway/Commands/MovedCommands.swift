import ArgumentParser

/// `dev`, which is a verb of `fcm-gateway-dev`.
struct MovedDevCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "dev", shouldDisplay: false)

    @Argument(parsing: .captureForPassthrough) var arguments: [String] = []

    func validate() throws { throw ValidationError("dev is a verb of fcm-gateway-dev: fcm-gateway-dev dev") }
}

/// `emulator`, which is a verb of `fcm-gateway-dev`.
struct MovedEmulatorCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "emulator", shouldDisplay: false)

    @Argument(parsing: .captureForPassthrough) var arguments: [String] = []

    func validate() throws { throw ValidationError("emulator is a verb of fcm-gateway-dev: fcm-gateway-dev emulator") }
}
