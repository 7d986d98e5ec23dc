/// Something the emulator holds back: a request or an answer.
struct Hold: Sendable {
    /// Releases it, see ``EmulatorState/release(_:)``.
    let id: Int

    /// Ends when it is released.
    let end: AsyncStream<Void>
}
