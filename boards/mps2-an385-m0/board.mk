# SPDX-License-Identifier: Apache-2.0
# Arm MPS2+ with a Cortex-M3 (application note 385), with code for a Cortex-M0: LAN9118 Ethernet,
# CMSDK UARTs.
CPU := -mcpu=cortex-m0 -mthumb
MEMORY := FLASH_ORIGIN=0x00000000 FLASH_SIZE=4M RAM_ORIGIN=0x20000000 RAM_SIZE=4M
DRIVERS := cortex_m fpgaio cmsdk_uart lan9118
DEFINES := CLOCK_HZ=25000000 FPGAIO_BASE=0x40028000 UART_BASE=0x40004000 LINE_BASE=0x40005000 LAN9118_BASE=0x40200000
QEMU := qemu-system-arm -M mps2-an385
NIC := -nic user,id=net0,model=lan9118
