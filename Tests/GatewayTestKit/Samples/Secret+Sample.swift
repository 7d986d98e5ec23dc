package import GatewayCore

extension Secret {
    /// 32 bytes that are the same for the same name and differ between names.
    package static func sample(_ name: String) -> Secret {
        var generator = SeededGenerator(seed: SeededGenerator.seed(of: name))
        return Secret(bytes: (0..<32).map { _ in UInt8.random(in: 0...255, using: &generator) })
    }
}
